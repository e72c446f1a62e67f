import type {
  AgentStatus,
  LiveChanges,
  LiveNode,
  LivePulse,
  LiveSample,
  LiveSnapshot,
  LiveSync,
  Verdict,
} from '@kpng/api'
import { batch, computed, signal } from '@preact/signals'
import { newRow, type Row, updateRow } from '../model/rows.js'
import { worstFirst } from '../model/states.js'

// What the agent has said. Rows are plain objects that change in place; signals say that some of them did.

/** How many syncs and samples are kept. */
const keptSyncs = 600
const keptSamples = 300

export const status = signal<AgentStatus | undefined>(undefined)
/** Whether what is shown is all there is: the agent has synced once, the core has read everything. */
export const isSynced = (now: AgentStatus | undefined): boolean =>
  now?.role === 'core' ? now.core?.synced === true : now?.lastSync !== undefined

/** The oldest first. */
export const samples = signal<readonly LiveSample[]>([])
/** Of a core, by name. */
export const nodes = signal<ReadonlyMap<string, LiveNode>>(new Map())
/** Grows with each change of rows. */
export const version = signal(0)
/** Grows when Services come or go, and after a snapshot. */
export const shape = signal(0)
/** Counts all syncs that were ever received. */
export const syncCount = signal(0)

const byKey = new Map<string, Row>()
let sorted: readonly Row[] = []
const kept: LiveSync[] = []
const changedRows = new Set<Row>()

/** In the order of namespace and name. */
export const allRows = (): readonly Row[] => sorted
export const rowOf = (key: string): Row | undefined => byKey.get(key)
/** The oldest first. */
export const allSyncs = (): readonly LiveSync[] => kept

/** The rows that changed since the last call. */
export function takeChangedRows(): readonly Row[] {
  const rows = [...changedRows]
  changedRows.clear()
  return rows
}

export const stateCounts = computed(() => {
  void version.value
  void shape.value
  const counts = Object.fromEntries(worstFirst.map((verdict) => [verdict, 0])) as Record<Verdict, number>
  for (const { service } of sorted) counts[service.verdict]++
  return counts
})

/** Endpoints of all Services that exist; undefined where only the used ones are known. */
export const endpointTotal = computed(() => {
  void version.value
  void shape.value
  let sum: number | undefined = 0
  for (const { service } of sorted)
    sum = service.total === undefined || sum === undefined ? undefined : sum + service.total
  return sum
})

/** The agent's clock minus this machine's. */
let skewMs = 0
export const agentTime = (localMs: number): number => localMs + skewMs

function takeStatus(sent: AgentStatus): void {
  status.value = sent
  const now = Date.parse(sent.now)
  if (!Number.isNaN(now)) skewMs = now - Date.now()
}

/** Older agents send fewer fields. */
export function takeSnapshot(sent: Partial<LiveSnapshot> & Pick<LiveSnapshot, 'status' | 'services'>): void {
  batch(() => {
    takeStatus(sent.status)
    byKey.clear()
    changedRows.clear()
    for (const service of sent.services) {
      const key = `${service.namespace}/${service.name}`
      byKey.set(key, newRow(key, service))
    }
    kept.length = 0
    addSyncs(sent.changes ?? [])
    samples.value = (sent.samples ?? []).slice(-keptSamples)
    nodes.value = new Map(sent.nodes?.map((node) => [node.name, node]))
    sortRows()
  })
}

export function takeChanges(sent: LiveChanges): void {
  batch(() => {
    takeStatus(sent.status)
    const now = performance.now()
    let isOtherShape = false
    for (const [key, service] of Object.entries(sent.services)) {
      const known = byKey.get(key)
      if (service === null) isOtherShape = byKey.delete(key) || isOtherShape
      else if (known) updateRow(known, service, now)
      else byKey.set(key, { ...newRow(key, service), seenAt: now })
      isOtherShape ||= !known && service !== null
      const row = byKey.get(key)
      if (row) changedRows.add(row)
    }
    addSyncs(sent.syncs)
    takeNodes(sent.nodes)
    if (isOtherShape) sortRows()
    version.value++
  })
}

export function takePulse({ status: sent, sample }: LivePulse): void {
  batch(() => {
    takeStatus(sent)
    samples.value = [...samples.peek().slice(1 - keptSamples), sample]
  })
}

function takeNodes(sent: LiveChanges['nodes']): void {
  if (!sent) return
  const next = new Map(nodes.peek())
  for (const [name, node] of Object.entries(sent)) {
    if (node === null) next.delete(name)
    else next.set(name, node)
  }
  nodes.value = next
}

/** A reader that resumed may get a sync twice. */
function addSyncs(syncs: readonly LiveSync[]): void {
  const last = kept.at(-1)?.number ?? 0
  const fresh = syncs.filter(({ number }) => number > last)
  for (const sync of fresh) kept.push(sync)
  if (kept.length > keptSyncs) kept.splice(0, kept.length - keptSyncs)
  syncCount.value += fresh.length
}

function sortRows(): void {
  sorted = [...byKey.values()].sort((a, b) => {
    const [x, y] = [a.service, b.service]
    if (x.namespace !== y.namespace) return x.namespace < y.namespace ? -1 : 1
    return x.name < y.name ? -1 : 1
  })
  shape.value++
}
