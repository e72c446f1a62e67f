import type { LiveSync, ServiceChangeAnswer, SyncTimes } from '@kpng/api'

// Where the time of one sync went.

export type SpanName = 'cluster' | 'source' | 'store' | 'view' | 'queue' | 'sync'

/** Milliseconds after the start of the sync. */
export interface Span {
  readonly name: SpanName
  readonly from: number
  readonly to: number
}

export const spanTexts: Readonly<Record<SpanName, string>> = {
  cluster: 'changed in the cluster → received',
  source: 'received → in the store',
  store: 'in the store → worked out for this node',
  view: 'worked out → handed to the backend',
  queue: 'handed over → the sync begins',
  sync: 'the backend makes the data plane match',
}

/** The spans that kpng itself is responsible for, in order. */
export const ownSpans: readonly SpanName[] = ['source', 'store', 'view', 'queue', 'sync']

const marks: readonly (readonly [SpanName, keyof Omit<SyncTimes, 'steps'>])[] = [
  ['cluster', 'trigger'],
  ['source', 'received'],
  ['store', 'stored'],
  ['view', 'viewed'],
  ['queue', 'arrived'],
]

/** The oldest first. A time that nobody knows joins two spans to one, with the name of the first. Clocks of two machines may disagree: no span is negative. */
export function spansOf({ times, durationMs }: LiveSync): readonly Span[] {
  const known = marks.flatMap(([name, mark]) => {
    const at = times?.[mark]
    return at === undefined ? [] : [{ name, at: Math.min(0, at) }]
  })
  const ends = [...known.slice(1).map(({ at }) => at), 0]
  const spans = known.map(({ name, at }, index) => ({ name, from: at, to: Math.max(at, ends[index] as number) }))
  return [...spans, { name: 'sync', from: 0, to: durationMs }]
}

/** From the event that kpng received until the data plane had it. If that is unknown: since the change in the cluster, or the sync alone. */
export function totalMs(sync: LiveSync): number {
  const { times, durationMs, latencyMs } = sync
  const first = times?.received ?? times?.stored ?? times?.viewed ?? times?.arrived
  if (first === undefined) return latencyMs ?? durationMs
  return durationMs - Math.min(0, first)
}

/** The middle of a span's length over syncs; undefined if none has it. */
export function medianOf(syncs: readonly LiveSync[], name: SpanName): number | undefined {
  const lengths = syncs.flatMap((sync) => {
    const span = spansOf(sync).find((each) => each.name === name)
    return span ? [span.to - span.from] : []
  })
  return median(lengths)
}

export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1]
}

/**
 * What changed, in words. It stands beside the name of the Service.
 * @param of what changed for this Service. Default: what the sync did in all
 */
export function changeText({ sentence, services, moreServices, full, error }: LiveSync, of?: string): string {
  const own = services.length > 1 ? services.find(({ service }) => service === of) : undefined
  if (own) return own.sentence === undefined ? countsText(own) : withoutName(own.sentence, own.service)
  const [first] = services
  if (sentence !== undefined) return first ? withoutName(sentence, first.service) : sentence
  const all = services.length + moreServices
  if (full) return all === 0 ? 'everything was compared' : `everything was compared: ${all} Services differ`
  if (!first) return error === undefined ? 'nothing of a Service' : 'the sync failed'
  return countsText(first)
}

function countsText({ before, after }: ServiceChangeAnswer): string {
  if (before === undefined) return `new, with ${after ?? 0} endpoints`
  if (after === undefined) return 'the Service is gone'
  return before === after ? 'changed' : `${before} → ${after} endpoints`
}

/** `10.244.3.4 of default/web is not ready` without the name of the Service. */
const withoutName = (sentence: string, service: string): string =>
  sentence.replace(` of ${service}`, '').replace(`${service}: `, '').replace(`${service} `, '')

/** The Service that a sync is listed under; undefined for a sync of everything. */
export const mainService = ({ services }: LiveSync): string | undefined => services[0]?.service

/** How many other Services the same sync changed. */
export const otherServices = ({ services, moreServices }: LiveSync): number =>
  Math.max(0, services.length - 1) + moreServices
