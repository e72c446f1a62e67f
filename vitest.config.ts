import { defineConfig } from 'vitest/config'

// Workspace packages are tested from their sources: no build between an edit and its test.
const conditions = ['kpng-source', 'node', 'import', 'default']

/** Suites of commands that share nothing with others: no kernel, no fixed addresses. */
const besideOthers = 'bad-input|completion|core-questions|help|kubectl-plugin|packages|pipeline|questions|status|usage'

/** Suites that run the commands as users do, and others that need a machine, or fixed addresses, for themselves. */
const commands = [
  `cli/!(${besideOthers}).test.ts`,
  'cli/*/**/*.test.ts',
  'dashboard/{browser,e2e}.test.ts',
  'examples/**/*.test.ts',
  'linux/**/*.test.ts',
]
/** Suites of data planes, in the kernel and on the machine's own addresses, and the kit that proves them. */
const backends = ['backends/**/*.test.ts']
/** Replaces a module, so it needs a process of its own. */
const alone = 'backends/nft/requirements.test.ts'
const conformance = ['conformance/**/*.test.ts', alone]
const never = ['**/node_modules/**', '**/dist/**']

/**
 * The parts of `npm test` (scripts/test.js). Without a name: everything, one file at a time. Where files are not isolated they share a
 * process: loading the same modules again for each file took a third of the time.
 */
const parts: Record<string, { include: string[]; exclude: string[]; maxWorkers: number; isolate?: boolean }> = {
  together: {
    include: ['**/*.test.ts'],
    exclude: [...never, ...commands, ...backends, ...conformance],
    maxWorkers: 2,
    isolate: false,
  },
  commands: { include: commands, exclude: never, maxWorkers: 1 },
  backends: { include: backends, exclude: [...never, alone], maxWorkers: 1, isolate: false },
  conformance: { include: conformance, exclude: never, maxWorkers: 1 },
}
const everything = { include: ['**/*.test.ts'], exclude: never, maxWorkers: 1 }

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['kpng-source', 'node'] } },
  test: {
    ...(parts[process.env.KPNG_TESTS ?? ''] ?? everything),
    // For hangs only: a busy machine may take twenty times as long as a quiet one.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    pool: 'forks',
  },
})
