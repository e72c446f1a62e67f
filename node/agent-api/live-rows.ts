import type { LiveService, LiveSync, ServiceState } from '@kpng/api'
import type { ServiceEndpoints } from '@kpng/client'
import type { Audience, FrontendTable } from '@kpng/dataplane'
import { serviceRow } from './rows.js'
import type { ServiceFacts } from './service-facts.js'

/** What a row of the live page is made of, beside the Service itself. */
export interface RowFacts {
  readonly table: FrontendTable
  /** Undefined: the core is not in this process. */
  readonly facts: ServiceFacts | undefined
  /** Undefined: none since the start. */
  readonly lastChange: LiveSync | undefined
  /** The data plane was found not to hold what it should. */
  readonly differs: boolean
  /** The row is about the whole cluster: that a node has no endpoint of its own is no matter. */
  readonly ofCluster?: boolean
}

export function liveRow(path: string, item: ServiceEndpoints, row: RowFacts): LiveService {
  const { table, facts, lastChange } = row
  const base = serviceRow(path, item, table)
  const leftOut = (row.ofCluster ? withoutNodes(facts?.leftOut) : facts?.leftOut) ?? {}
  return {
    ...base,
    ...(facts ? { total: facts.total } : {}),
    // Without a node, nobody uses endpoints: those that exist are counted.
    ...(facts && row.ofCluster ? { endpoints: facts.total } : {}),
    ...(facts && Object.keys(leftOut).length > 0 ? { leftOut } : {}),
    state: stateOf(path, row),
    hints: (leftOut['hints-other-node'] ?? 0) + (leftOut['hints-other-zone'] ?? 0) > 0,
    sourceRanges: table.wantedBy(path).some(({ allowedSources }) => allowedSources !== undefined),
    changedBy: lastChange?.number ?? 0,
    ...(lastChange ? { changedAt: lastChange.at } : {}),
  }
}

/** Those that are left out whatever the node. */
const withoutNodes = (leftOut: LiveService['leftOut'] = {}): LiveService['leftOut'] =>
  Object.fromEntries(
    Object.entries(leftOut).filter(([reason]) => reason !== 'not-local' && !reason.startsWith('hints-')),
  )

/** From the best to the worst. */
const states: readonly ServiceState[] = ['serving', 'partly', 'draining', 'dropped', 'refused', 'differs']

const worst = (found: readonly ServiceState[]): ServiceState =>
  states[Math.max(0, ...found.map((state) => states.indexOf(state)))] as ServiceState

/** The worst of its frontends. A Service without an address to serve has none, and is well. */
function stateOf(path: string, { table, facts, differs, ofCluster }: RowFacts): ServiceState {
  if (differs) return 'differs'
  const wanted = table.wantedBy(path)
  const found: ServiceState[] = []
  for (const frontend of wanted) {
    // The address belongs to another Service.
    if (table.get(frontend.id) !== frontend) found.push(wanted.length === 1 ? 'refused' : 'partly')
    else found.push(audienceState(frontend.inside, ofCluster), audienceState(frontend.outside, ofCluster))
  }
  if (facts?.onlyStandIns) found.push('draining')
  if (facts && needsAttention.some((reason) => (facts.leftOut[reason] ?? 0) > 0)) found.push('partly')
  return worst(found)
}

/** Endpoints that are left out for other reasons, such as a policy, are as they should be. */
const needsAttention = ['not-ready', 'terminating', 'no-port'] as const

const audienceState = ({ endpoints, otherwise }: Audience, ofCluster = false): ServiceState =>
  endpoints.length > 0 ? 'serving' : otherwise === 'refuse' ? 'refused' : ofCluster ? 'serving' : 'dropped'
