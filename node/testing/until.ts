import type { Log } from '@kpng/api'

/** Waits until a condition holds; fails with its name when it does not within the time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Lines that a component logged, to look at in a test. */
export function recordingLog(): { readonly lines: string[]; readonly log: Log } {
  const lines: string[] = []
  const add =
    (severity: string) =>
    (message: string, fields: object = {}) =>
      void lines.push(`${severity} ${message} ${JSON.stringify(fields)}`)
  const log: Log = {
    error: add('E'),
    warn: add('W'),
    info: add('I'),
    detail: (level, message, fields) => add(`${level}`)(message, fields),
    shows: () => true,
  }
  return { lines, log }
}
