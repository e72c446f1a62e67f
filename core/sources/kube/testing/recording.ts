import type { Log } from '@kpng/api'
import { type Line, recordingLog as recording } from '../../../testing/until.js'
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
  connectedAfterMs: 100,
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

export function recordingLog(): Log & { lines: Line[]; text(): string } {
  const { log, told } = recording()
  return { ...log, lines: told, text: () => told.map((line) => JSON.stringify(line)).join('\n') }
}
