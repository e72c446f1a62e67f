import { isLoopback } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import { dump } from 'js-yaml'
import { expect, test } from 'vitest'
import {
  addressOf,
  clusterCidr,
  type Host,
  hosts,
  ownExternalAddress,
  secondAddress,
} from '../conformance/addresses.js'
import type { Cell, Expectation, KubernetesObject } from '../conformance/cases/case.js'
import { cases } from '../conformance/cases/index.js'
import { clusterObjects, serviceProxyName } from '../conformance/cases/objects.js'
import { type Round, roundsOf } from '../conformance/runner/rounds.js'
import { keptKeys } from '../core/kubernetes/index.js'
import { readContent } from '../core/sources/file/read.js'
import { Store } from '../core/store/index.js'
import { nodeViewOf } from '../core/view/index.js'
import { FrontendTable } from './frontend-table.js'
import { type Client, clientOf, isMasqueraded, type Route, routeOf } from './route.js'

// Every cell of the conformance kit as a question: the kit measures the same cells with packets on real data planes.

const ownAddresses = [addressOf['node-a'], secondAddress, ownExternalAddress].flatMap((each) => Object.values(each))

/** What node-a serves when these objects are all there is. */
async function tableOf(objects: readonly KubernetesObject[], proxyName: string): Promise<FrontendTable> {
  const text = [...clusterObjects, ...objects].map((object) => dump(object, { skipInvalid: true })).join('---\n')
  const kept = keptKeys([], [])
  const store = new Store()
  const options = { serviceProxyName: proxyName, intern: String, keptOfServices: kept, keptOfNodes: kept }
  store.update((transaction) => {
    transaction.replaceAll(readContent('objects.yaml', text, options))
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  const detectLocal = { mode: 'ClusterCIDR', cidrs: Object.values(clusterCidr) } as const
  return FrontendTable.of(await nodeViewOf(store, 'node-a'), { detectLocal })
}

function clientIn(table: FrontendTable, host: Host, family: 'IPv4' | 'IPv6'): Client {
  const ip = addressOf[host][family]
  return host === 'node-a' ? { kind: 'node', ip } : clientOf(table.node, ip)
}

const serverAt = (ip: string): string => hosts.find((host) => Object.values(addressOf[host]).includes(ip)) ?? ip

/** The prediction, in the kit's words. */
function predicted(tables: readonly FrontendTable[], { client: host, to }: Cell): { route: Route; as: Expectation } {
  const protocol = to.protocol.toLowerCase() as Protocol
  const routes = tables.map((table) => {
    const client = clientIn(table, host, to.family)
    return { table, client, route: routeOf(table, { client, to: to.ip, port: to.port, protocol }, ownAddresses) }
  })
  // The proxies of one node stand side by side. What one of them serves, the others leave alone; what nobody has is decided last.
  const { table, client, route } = routes.find(({ route }) => route.frontend) ?? (routes[0] as (typeof routes)[0])
  if (route.outcome !== 'endpoint') return { route, as: { outcome: route.outcome } }
  const masqueraded = route.endpoints.map(
    (endpoint) => route.frontend && isMasqueraded(route.frontend, client, endpoint, table.node),
  )
  const source = masqueraded.every((is) => is) ? 'node' : masqueraded.some((is) => is) ? 'any' : 'kept'
  const servers = route.endpoints.map(({ ip, port }) => `${serverAt(ip)}:${port || to.port}`)
  return { route, as: { outcome: 'reached', servers, source } }
}

function agrees({ expect: expected, client, to }: Cell, { route, as }: ReturnType<typeof predicted>): boolean {
  // What the proxy leaves alone reaches the node itself here, and nothing listens there.
  const isOwn = ownAddresses.includes(to.ip) || isLoopback(to.ip)
  const outcome = as.outcome === 'passed' && isOwn ? 'refused' : as.outcome
  if (expected.outcome === 'unserved') return outcome !== 'reached'
  if (expected.outcome !== 'reached' || as.outcome !== 'reached') return expected.outcome === outcome
  const isExpected = (server: string) =>
    expected.servers.some((each) => each === server || each === server.split(':')[0])
  // A client that session affinity remembers gets one of them.
  const servers = route.frontend?.sessionAffinitySeconds ? as.servers.filter(isExpected) : as.servers
  const hasServers = servers.every(isExpected) && servers.length === expected.servers.length
  // The node's own address is the node's, whether it is kept or masqueraded.
  const hasSource = expected.source === 'any' || client === 'node-a' || expected.source === as.source
  return hasServers && hasSource
}

const rounds = roundsOf(cases)

test.each(rounds.map((round, index): [number, Round] => [index + 1, round]))(
  'round %i of the kit: a new connection goes where the kit expects it',
  async (_, round) => {
    const tables = [await tableOf(round.objects, ''), await tableOf(round.objects, serviceProxyName)]
    // A flow that exists stays where it is: that is not a question about new connections.
    const cells = round.cells.filter(({ cell, step }) => cell.flow === undefined || step === 0)
    const wrong = cells.flatMap(({ id, cell }) => {
      const prediction = predicted(tables, cell)
      return agrees(cell, prediction) ? [] : [{ id, expected: cell.expect, ...prediction }]
    })
    expect(cells.length).toBeGreaterThan(0)
    expect(wrong).toEqual([])
  },
)
