/** What a program checks, by name. A check may return what it has seen. */
export type Checks = Readonly<Record<string, () => Promise<unknown>>>

/**
 * Runs one check after the other and prints a line for each: `ok`, with what it returned, or `not ok`. Returns the exit code.
 * @param afterEach also after one that failed
 */
export async function runChecks(checks: Checks, afterEach: () => Promise<void>): Promise<number> {
  let failed = 0
  for (const [name, check] of Object.entries(checks)) {
    const startedMs = performance.now()
    try {
      const seen = await check()
      const ms = Math.round(performance.now() - startedMs)
      console.log(`ok ${name} (${ms} ms)${seen === undefined ? '' : `: ${seen}`}`)
    } catch (error) {
      failed++
      console.log(`not ok ${name}: ${error instanceof Error ? error.stack : error}`)
    }
    await afterEach()
  }
  return failed === 0 ? 0 : 1
}
