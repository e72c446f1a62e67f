import { defineConfig } from 'vitest/config'

// Workspace packages are tested from their sources: no build between an edit and its test.
const conditions = ['kpng-source', 'node', 'import', 'default']

/** Suites of commands that share nothing with others: no kernel, no fixed addresses. */
const besideOthers = 'bad-input|completion|core-questions|help|kubectl-plugin|packages|pipeline|questions|status|usage'

/** Suites that use the kernel, the commands as users run them, or addresses that they share: one at a time. */
const alone = [
  'backends/**/*.test.ts',
  `cli/!(${besideOthers}).test.ts`,
  'cli/*/**/*.test.ts',
  'conformance/**/*.test.ts',
  'dashboard/{browser,e2e}.test.ts',
  'linux/**/*.test.ts',
  'examples/**/*.test.ts',
]
const never = ['**/node_modules/**', '**/dist/**']

/** `npm test` runs these parts one after the other. Without a name: everything, one file at a time. */
const parts: Record<string, { include: string[]; exclude: string[]; maxWorkers: number }> = {
  alone: { include: alone, exclude: never, maxWorkers: 1 },
  together: { include: ['**/*.test.ts'], exclude: [...never, ...alone], maxWorkers: 2 },
}
const everything = { include: ['**/*.test.ts'], exclude: never, maxWorkers: 1 }

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['kpng-source', 'node'] } },
  test: {
    ...(parts[process.env.KPNG_TESTS ?? ''] ?? everything),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
  },
})
