import type { Log, LogFields } from '@kpng/api'
import type { KubeObject, ObjectHandler, ReflectorTiming } from '../reflector/index.js'

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

/** A handler that notes what it is told, as `+name@version`, `-name`, `flush` and `listed`. */
export class RecordingHandler implements ObjectHandler {
  readonly calls: string[] = []
  readonly state = new Map<string, string>()
  lists = 0

  set({ metadata }: KubeObject): void {
    this.calls.push(`+${metadata.name}@${metadata.resourceVersion}`)
    this.state.set(metadata.name, String(metadata.resourceVersion))
  }

  delete(_: string, name: string): void {
    this.calls.push(`-${name}`)
    this.state.delete(name)
  }

  nameless(): void {
    this.calls.push('nameless')
  }

  flush(listed: boolean): void {
    this.calls.push(listed ? 'listed' : 'flush')
    if (listed) this.lists++
  }

  /** What it was told since the last time, without the ends of batches. */
  take(): string[] {
    return this.calls.splice(0).filter((call) => call !== 'flush')
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
