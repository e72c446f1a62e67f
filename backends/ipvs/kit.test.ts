import { isLoopback } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import { type Client, clientOf, FrontendTable } from '@kpng/dataplane'
import { dump } from 'js-yaml'
import { expect, test } from 'vitest'
import { addressOf, clusterCidr, hosts, ownExternalAddress, secondAddress } from '../../conformance/addresses.js'
import { type Cell, type Expectation, isDecidedByObjects, type KubernetesObject } from '../../conformance/cases/case.js'
import { cases } from '../../conformance/cases/index.js'
import { clusterObjects, serviceProxyName } from '../../conformance/cases/objects.js'
import { deviated, deviationOf } from '../../conformance/deviations/deviation.js'
import { ipvs } from '../../conformance/deviations/ipvs.js'
import { type Round, roundsOf } from '../../conformance/runner/rounds.js'
import { keptKeys } from '../../core/kubernetes/index.js'
import { nodeViewOf } from '../../core/sinks/local/index.js'
import { readContent } from '../../core/sources/file/read.js'
import { Store } from '../../core/store/index.js'
import { placeOf } from './rules.js'
import { addressesByFamily, IpvsState } from './state.js'
import { walk } from './testing/walk.js'

// Every new connection of the conformance kit through the rules and virtual servers, by hand. The kit measures the same cells with packets on
// kernels that have IPVS; what differs must be one of the named deviations.

const ownAddresses = [addressOf['node-a'], secondAddress, ownExternalAddress].flatMap((each) => Object.values(each))
const dataplane = {
  detectLocal: { mode: 'ClusterCIDR', cidrs: Object.values(clusterCidr) },
  nodePortAddresses: ['all'],
} as const

interface Served {
  readonly table: FrontendTable
  readonly state: IpvsState
}

/** What node-a serves when these objects are all there is. */
async function servedBy(objects: readonly KubernetesObject[], proxyName: string): Promise<Served> {
  const text = [...clusterObjects, ...objects].map((object) => dump(object, { skipInvalid: true })).join('---\n')
  const kept = keptKeys([], [])
  const store = new Store()
  const options = { serviceProxyName: proxyName, intern: String, keptOfServices: kept, keptOfNodes: kept }
  store.update((transaction) => {
    transaction.replaceAll(readContent('objects.yaml', text, options))
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  const table = FrontendTable.of(await nodeViewOf(store, 'node-a'), dataplane)
  const state = new IpvsState(table)
  state.rebuild({
    ...{ ownAddresses: new Set(ownAddresses), nodePortAddresses: addressesByFamily(ownAddresses) },
    ...{ schedulerOf: () => 'rr', serves: () => true },
  })
  return { table, state }
}

const serverAt = (ip: string): string => hosts.find((host) => Object.values(addressOf[host]).includes(ip)) ?? ip

/** What happens, in the kit's words. The proxies of a node stand side by side: what one has, the others leave alone. */
function seenBy(served: readonly Served[], { client: host, to }: Cell): Expectation {
  const protocol = to.protocol.toLowerCase() as Protocol
  const answers = served.map(({ table, state }) => {
    const ip = addressOf[host][to.family]
    const client: Client = host === 'node-a' ? { kind: 'node', ip } : clientOf(table.node, ip)
    const place = placeOf(to.family, table.node, dataplane.detectLocal)
    const isHeld = [...state.addresses].includes(to.ip) || state.servers.has(`${to.ip}:${to.port}/${protocol}`)
    return { isHeld, ip, answer: walk(state, place, { client, to: to.ip, port: to.port, protocol }) }
  })
  const { answer, ip } = answers.find(({ isHeld }) => isHeld) ?? (answers[0] as (typeof answers)[0])
  const { outcome, endpoints, isMasqueraded } = answer
  if (outcome !== 'endpoint') {
    // What the proxy leaves alone reaches a pod where it is that pod's own address.
    const pod = serverAt(to.ip)
    if (outcome === 'passed' && /^[ab]\d$/.test(pod)) {
      return { outcome: 'reached', servers: [`${pod}:${to.port}`], source: 'kept' }
    }
    const isOwn = ownAddresses.includes(to.ip) || isLoopback(to.ip)
    return { outcome: outcome === 'passed' && isOwn ? 'refused' : outcome }
  }
  const split = (key: string) =>
    /^\[?(.+?)\]?(?::(\d+))?$/.exec(key.includes('.') || key.startsWith('[') ? key : `[${key}]`)
  const found = endpoints.map((key) => [split(key)?.[1] ?? '', split(key)?.[2] ?? String(to.port)] as const)
  const hairpins = found.filter(([server]) => server === ip).length
  const source = isMasqueraded || hairpins === found.length ? 'node' : hairpins > 0 ? 'any' : 'kept'
  return { outcome: 'reached', servers: found.map(([server, port]) => `${serverAt(server)}:${port}`), source }
}

function agrees(expected: Expectation, seen: Expectation, { client }: Cell, hasAffinity: boolean): boolean {
  if (expected.outcome === 'unserved') return seen.outcome !== 'reached'
  if (expected.outcome !== 'reached' || seen.outcome !== 'reached') return expected.outcome === seen.outcome
  const isExpected = (server: string) =>
    expected.servers.some((each) => each === server || each === server.split(':')[0])
  const servers = hasAffinity ? seen.servers.filter(isExpected) : seen.servers
  const hasSource = expected.source === 'any' || client === 'node-a' || expected.source === seen.source
  return servers.every(isExpected) && servers.length === expected.servers.length && hasSource
}

test.each(roundsOf(cases.filter(isDecidedByObjects)).map((round, index): [number, Round] => [index + 1, round]))(
  'round %i of the kit: a new connection goes where the kit expects it, or where a deviation says',
  async (_, round) => {
    const served = [await servedBy(round.objects, ''), await servedBy(round.objects, serviceProxyName)]
    const cells = round.cells.filter(({ cell, step }) => !cell.throughout && (cell.flow === undefined || step === 0))
    const wrong = cells.flatMap(({ id, cell }) => {
      const deviation = deviationOf(ipvs, id, cell.expect)
      const expected = deviation ? deviated(cell.expect, deviation) : cell.expect
      const seen = seenBy(served, cell)
      const hasAffinity = /affinity/.test(id)
      return agrees(expected, seen, cell, hasAffinity) ? [] : [{ id, expected, seen }]
    })
    expect(cells.length).toBeGreaterThan(0)
    expect(wrong).toEqual([])
  },
)
