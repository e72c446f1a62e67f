import type { Log, LogFields } from '@kpng/api'

type Condition = () => boolean | Promise<boolean>

/** Waits until a condition holds. Fails with its name if it does not hold in time; without a name, with the condition itself. */
export async function until(
  what: string | Condition,
  holds: Condition = what as Condition,
  timeoutMs = 90_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}`)
    await sleep(5)
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** For `expect.poll`: long enough for a loaded machine, and over as soon as the condition holds. */
export const poll = { timeout: 90_000, interval: 5 }

export interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** A log that keeps what it is told: as text (`E`, `W`, `I` or the level of a detail, the message, the fields as JSON), and as it was told. */
export function recordingLog(): { readonly lines: string[]; readonly told: Line[]; readonly log: Log } {
  const lines: string[] = []
  const told: Line[] = []
  const add =
    (severity: string, level: string) =>
    (message: string, fields: LogFields = {}) => {
      lines.push(`${severity} ${message} ${JSON.stringify(fields, errorsAsText)}`)
      told.push({ level, message, fields })
    }
  const log: Log = {
    error: add('E', 'error'),
    warn: add('W', 'warn'),
    info: add('I', 'info'),
    detail: (level, message, fields) => add(`${level}`, `${level}`)(message, fields),
    shows: () => true,
  }
  return { lines, told, log }
}

const errorsAsText = (_: string, value: unknown) => (value instanceof Error ? value.message : value)
