import { defineConfig } from 'vitest/config'

// Workspace packages are tested from their sources: no build between an edit and its test.
const conditions = ['kpng-source', 'node', 'import', 'default']

const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['kpng-source', 'node'] } },
}
const common = { testTimeout: 30_000, hookTimeout: 30_000, pool: 'forks' as const }
const never = ['**/node_modules/**', '**/dist/**']

/** Suites with the kernel, with commands as users run them, and with addresses that they share: one at a time. */
const alone = ['backends/**/*.test.ts', 'cli/**/*.test.ts', 'conformance/**/*.test.ts']

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: { ...common, name: 'alone', include: alone, exclude: never, maxWorkers: 1, sequence: { groupOrder: 0 } },
      },
      // Everything else: side by side, when those are done.
      {
        ...shared,
        test: {
          ...common,
          name: 'together',
          include: ['**/*.test.ts'],
          exclude: [...never, ...alone],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
