import type { Log } from '@kpng/api'

/** Waits until a condition holds. Fails with its name if it does not hold in time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** For `expect.poll`: long enough for a loaded machine, and over as soon as the condition holds. */
export const poll = { timeout: 20_000, interval: 5 }

/** A log that keeps its lines: `E`, `W`, `I` or the level of a detail, the message, and the fields as JSON. */
export function recordingLog(): { readonly lines: string[]; readonly log: Log } {
  const lines: string[] = []
  const add =
    (severity: string) =>
    (message: string, fields: object = {}) =>
      void lines.push(`${severity} ${message} ${JSON.stringify(fields, errorsAsText)}`)
  const log: Log = {
    error: add('E'),
    warn: add('W'),
    info: add('I'),
    detail: (level, message, fields) => add(`${level}`)(message, fields),
    shows: () => true,
  }
  return { lines, log }
}

const errorsAsText = (_: string, value: unknown) => (value instanceof Error ? value.message : value)
