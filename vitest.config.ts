import { defineConfig } from 'vitest/config'

// Workspace packages are tested from their sources: no build between an edit and its test.
const conditions = ['kpng-source', 'node', 'import', 'default']

/** Suites of commands that share nothing with others: no kernel, no fixed addresses. */
const besideOthers = 'bad-input|completion|core-questions|help|kubectl-plugin|packages|pipeline|questions|status|usage'

/** Suites that run the commands as users do, and others that need a machine, or fixed addresses, for themselves. */
const commands = [
  `cli/!(${besideOthers}).test.ts`,
  'cli/*/**/*.test.ts',
  'conformance/vm.test.ts',
  'dashboard/{browser,e2e}.test.ts',
  'examples/**/*.test.ts',
  'linux/**/*.test.ts',
]
/** Suites of data planes: in the kernel and on the machine's own addresses. */
const dataPlanes = ['backends/**/*.test.ts', 'conformance/!(vm).test.ts', 'conformance/*/**/*.test.ts']
const never = ['**/node_modules/**', '**/dist/**']

/** The parts of `npm test` (scripts/test.js). Without a name: everything, one file at a time. */
const parts: Record<string, { include: string[]; exclude: string[]; maxWorkers: number }> = {
  together: { include: ['**/*.test.ts'], exclude: [...never, ...commands, ...dataPlanes], maxWorkers: 2 },
  commands: { include: commands, exclude: never, maxWorkers: 1 },
  'data-planes': { include: dataPlanes, exclude: never, maxWorkers: 1 },
}
const everything = { include: ['**/*.test.ts'], exclude: never, maxWorkers: 1 }

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['kpng-source', 'node'] } },
  test: {
    ...(parts[process.env.KPNG_TESTS ?? ''] ?? everything),
    // For hangs only: a busy machine may take ten times as long as a quiet one.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: 'forks',
  },
})
