import { createReadStream } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { create } from '@bufbuild/protobuf'
import { KpngError, type Log, localv1, messageOf } from '@kpng/api'
import { pause as pauseOnClock } from '@kpng/client'
import { messageBytes, type RecordHead, type RecordLine, recordVersion, setNamed } from '../../record/line.js'
import type { Store } from '../../store/index.js'
import { RelayedState } from '../api/relayed-state.js'
import { Skips } from '../skips.js'

export interface ReplayOptions {
  readonly store: Store
  /** A file that `recordChanges` wrote. */
  readonly path: string
  readonly log: Log
  readonly skips?: Skips
  /** Ends it. */
  readonly signal: AbortSignal
  /** How many times faster than it was recorded; Infinity: without pauses. Default 1. */
  readonly speed?: number
  /** Stops so long after the start of the record, in milliseconds. The state stays as it is then. Default: at its end. */
  readonly untilMs?: number
  /** Waits; for tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Plays a record into the store: the state at its start, then every change at its time. At the end the last state stays. */
export async function replay(options: ReplayOptions): Promise<void> {
  await play(options)
  await untilAborted(options.signal)
}

/** The same, and ends with the record. */
export async function play(options: ReplayOptions): Promise<void> {
  const { store, path, log, signal, speed = 1, untilMs = Number.POSITIVE_INFINITY, pause = pauseOnClock } = options
  const state = new RelayedState(options.skips ?? new Skips(log))
  let playedMs: number | undefined
  let count = 0
  for await (const { atMs, ...operations } of changeSetsIn(path, log)) {
    if (atMs > untilMs || signal.aborted) break
    // The first change set is the state at the start: nobody waits for it.
    if (playedMs !== undefined) await pause((atMs - playedMs) / speed, signal)
    if (signal.aborted) return
    playedMs = atMs
    count++
    store.update((transaction) => {
      state.apply(operations, transaction)
      transaction.setSynced('services', 'endpoints', 'nodes')
    })
  }
  if (count === 0) throw new KpngError('invalid', `${path} has no change to replay.`)
  log.info('The record was replayed; its last state stays', { path, changes: count, untilMs: playedMs ?? 0 })
}

/** Whether a file is a record. A file that cannot be read is not a record: the reader of the file says why. */
export async function isRecord(path: string): Promise<boolean> {
  const file = await openFile(path).catch(() => undefined)
  try {
    const { buffer } = (await file?.read(Buffer.alloc(64), 0, 64).catch(() => undefined)) ?? {}
    return /^\s*\{\s*"kpng"\s*:\s*"record"/.test(buffer?.toString('utf8') ?? '')
  } finally {
    await file?.close()
  }
}

interface RecordedChanges {
  readonly atMs: number
  readonly reset: boolean
  readonly sets: localv1.Value[]
  readonly deletes: localv1.Ref[]
  readonly triggers: readonly localv1.Trigger[]
  readonly timeline: undefined
}

/** The change sets of a record, one at a time: a record may be larger than memory. */
async function* changeSetsIn(path: string, log: Log): AsyncGenerator<RecordedChanges> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  let number = 0
  let open = emptyChanges()
  try {
    for await (const text of lines) {
      number++
      if (number === 1) checkHead(path, text)
      else {
        const line = parsed(text)
        if (!line) {
          log.warn('The record ends in the middle of a line; it is replayed up to there', { path, line: number })
          return
        }
        if (line.op === 'sync') {
          yield { ...open, atMs: line.atMs }
          open = emptyChanges()
        } else open = withLine(open, line, path, number)
      }
    }
  } catch (error) {
    if (error instanceof KpngError) throw error
    throw new KpngError('unavailable', `${path} cannot be read: ${messageOf(error)}.`, { cause: error })
  }
  if (number === 0) throw notARecord(path)
}

const emptyChanges = () => ({
  reset: false,
  sets: [] as localv1.Value[],
  deletes: [] as localv1.Ref[],
  triggers: [],
  timeline: undefined,
})

function withLine(
  open: ReturnType<typeof emptyChanges>,
  line: Exclude<RecordLine, { op: 'sync' }>,
  path: string,
  number: number,
): ReturnType<typeof emptyChanges> {
  if (line.op === 'reset') return { ...emptyChanges(), reset: true }
  const set = setNamed(line.set)
  // A newer version may have recorded more.
  if (set === undefined) return open
  const ref = create(localv1.RefSchema, { set, path: line.path })
  if (line.op === 'delete') open.deletes.push(ref)
  else {
    try {
      open.sets.push(create(localv1.ValueSchema, { ref, bytes: messageBytes(set, line.message) }))
    } catch (error) {
      throw new KpngError('invalid', `${path}:${number}: ${line.path} cannot be understood: ${messageOf(error)}.`)
    }
  }
  return open
}

/** Undefined for a line that was cut off. */
function parsed(text: string): RecordLine | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return typeof line === 'object' && line !== null && 'op' in line ? (line as RecordLine) : undefined
  } catch {
    return undefined
  }
}

function checkHead(path: string, text: string): void {
  let head: Partial<RecordHead>
  try {
    head = JSON.parse(text) as Partial<RecordHead>
  } catch {
    throw notARecord(path)
  }
  if (head?.kpng !== 'record') throw notARecord(path)
  if (typeof head.version !== 'number' || head.version > recordVersion) {
    throw new KpngError(
      'invalid',
      `${path} is a record of version ${head.version}, and this kpng reads version ${recordVersion}. Use a newer kpng.`,
    )
  }
}

const notARecord = (path: string): KpngError =>
  new KpngError('invalid', `${path} is not a record of kpng. Make one with: kpng kube to-record -o ${path}`)

/** A timer keeps the process: with a sink that has no sockets, such as to-json, Node would end it. */
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const timer = setInterval(() => {}, 3_600_000)
    signal.addEventListener(
      'abort',
      () => {
        clearInterval(timer)
        resolve()
      },
      { once: true },
    )
  })
