import type { Log, LogFields } from '@kpng/api'
import type { Batch, ObjectEvent, ReflectorTiming } from '../reflector/index.js'

/** Times that make a test quick and leave the order of events as it is. */
export const quick: Partial<ReflectorTiming> = {
  backoff: { minMs: 10, maxMs: 80, resetAfterMs: 500 },
  watchSeconds: [5, 10],
  watchGraceMs: 1_000,
  answerTimeoutMs: 2_000,
  initialEventsQuietMs: 150,
  streamingRecheckMs: 60_000,
  shortWatchMs: 100,
  absentRecheckMs: 200,
}

/** Notes what comes in batches: `+name@version`, `-name`, `nameless`, and the state of each batch at its end. */
export class BatchRecorder {
  readonly notes: string[] = []
  readonly state = new Map<string, string>()
  lists = 0

  add({ events, state }: Batch): void {
    for (const event of events) this.#note(event)
    this.notes.push(state)
    if (state === 'listed') this.lists++
  }

  /** What came since the last time. The ends of batches are left out, except those of lists. */
  take(): string[] {
    return this.notes.splice(0).filter((note) => note !== 'listing' && note !== 'watching')
  }

  #note(event: ObjectEvent): void {
    if (event.type === 'set') {
      const { name, resourceVersion } = event.object.metadata
      this.notes.push(`+${name}@${resourceVersion}`)
      this.state.set(name, String(resourceVersion))
    } else if (event.type === 'delete') {
      this.notes.push(`-${event.name}`)
      this.state.delete(event.name)
    } else {
      this.notes.push('nameless')
    }
  }
}

export interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

export function recordingLog(): Log & { lines: Line[]; text(): string } {
  const lines: Line[] = []
  const note =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields })
  return {
    lines,
    text: () => lines.map((line) => JSON.stringify(line)).join('\n'),
    error: note('error'),
    warn: note('warn'),
    info: note('info'),
    detail: (level, message, fields = {}) => void lines.push({ level: `detail ${level}`, message, fields }),
    shows: () => true,
  }
}

/** Waits until something holds; fails by the test's own time limit otherwise. */
export async function until(holds: () => boolean, everyMs = 5): Promise<void> {
  while (!holds()) await sleep(everyMs)
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
