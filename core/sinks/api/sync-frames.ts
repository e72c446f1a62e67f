import { create, toBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import type { Trigger } from '../../store/index.js'
import type { ChangeSet } from './change-set.js'
import { frame } from './grpc/index.js'

/** What a Sync says beside the end of its change set. */
export interface SyncOptions {
  /** Where the time went. Default: not told. */
  readonly withTimeline?: boolean
  /** For watchers that can resume: the revision of the store. */
  readonly revision?: number | undefined
  /** The watcher keeps what it had, except in these buckets, and then has what this digest says. Default: it did not resume. */
  readonly resumed?:
    | { readonly bucketCount: number; readonly buckets: readonly number[]; readonly digest?: Uint8Array }
    | undefined
}

export function frameOf(op: localv1.OpItem['op']): Buffer {
  return frame(toBinary(localv1.OpItemSchema, create(localv1.OpItemSchema, { op })))
}

export const resetFrame = frameOf({ case: 'reset', value: create(localv1.EmptyOpSchema) })
const plainSync = frameOf({ case: 'sync', value: create(localv1.EmptyOpSchema) })

/** The ends of change sets. After a change, and when many come back, most watchers are told the same: they get the same frame. */
export class SyncFrames {
  #last: Pick<SyncOptions, 'revision' | 'resumed'> & {
    readonly triggers: readonly Trigger[]
    readonly frame: Buffer
  } = { triggers: [], frame: plainSync }

  of({ triggers, timeline }: ChangeSet, { withTimeline, revision, resumed }: SyncOptions): Buffer {
    if (withTimeline && timeline) return encode(triggers, { revision, resumed }, timeline)
    const last = this.#last
    if (last.resumed === resumed && last.revision === revision && sameTriggers(last.triggers, triggers)) {
      return last.frame
    }
    this.#last = { triggers, revision, resumed, frame: encode(triggers, { revision, resumed }) }
    return this.#last.frame
  }
}

function encode(
  triggers: readonly Trigger[],
  { revision, resumed }: SyncOptions,
  timeline?: ChangeSet['timeline'],
): Buffer {
  const value = create(localv1.EmptyOpSchema, {
    triggers: triggers.map(({ service, unixMs }) => ({ service, unixMs: BigInt(Math.trunc(unixMs)) })),
    ...(timeline && {
      timeline: {
        revision: BigInt(timeline.revision),
        receivedAtMs: timeline.receivedAtMs ?? 0,
        committedAtMs: timeline.committedAtMs,
        // It was worked out just now.
        viewedAtMs: performance.timeOrigin + performance.now(),
      },
    }),
    ...(revision !== undefined && { position: { revision: BigInt(revision) } }),
    ...(resumed && { resumed: { ...resumed, buckets: [...resumed.buckets] } }),
  })
  return frameOf({ case: 'sync', value })
}

const sameTriggers = (a: readonly Trigger[], b: readonly Trigger[]): boolean =>
  a.length === b.length &&
  a.every(({ service, unixMs }, index) => service === b[index]?.service && unixMs === b[index]?.unixMs)
