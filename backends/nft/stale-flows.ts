import { type Flow as FlowInText, runProgram } from '@kpng/linux'
import { type Family, formatAddress, parseAddress } from './address.js'
import type { DesiredState } from './desired-state.js'
import { type ElementMap, type Elements, endpointData, nodePortKey, protocolBytes, serviceKey } from './element.js'
import { allListKinds, type SetPath, splitSetPath } from './names.js'
import { type KeyEndpoint, lostOutside, serves } from './serving.js'
import type { Transaction } from './transaction.js'

// A UDP client that keeps its port stays with the endpoint that its first packet was given, for as long as it sends: the
// kernel takes all of it for one flow. When that endpoint no longer serves, the flow must go, so that the next packet is given
// another one. TCP needs nothing of the kind: it notices.

/** A UDP flow in the kernel's table of connections. Addresses are bytes. */
export interface Flow {
  readonly family: Family
  /** Whom the client addressed. */
  readonly destination: string
  readonly destinationPort: number
  /** Who answers. */
  readonly answeredBy: string
  readonly answeredByPort: number
  /** Somebody changed the destination. */
  readonly isRedirected: boolean
}

export const flowInBytes = (flow: FlowInText): Flow => ({
  family: flow.family === 'IPv4' ? 'ip' : 'ip6',
  destination: parseAddress(flow.destination)?.bytes ?? '',
  destinationPort: flow.destinationPort,
  answeredBy: parseAddress(flow.answeredBy)?.bytes ?? '',
  answeredByPort: flow.answeredByPort,
  isRedirected: flow.isRedirected,
})

/** An endpoint that left a key, or (without one) a key that got its first endpoints. */
export interface ListChange {
  readonly family: Family
  readonly key: string
  readonly gone: string | undefined
  /** Only askers from outside lost it; pods and the node may still be given it. */
  readonly onlyOutside?: true
}

const udp = protocolBytes('udp')

const isUdp = (key: string): boolean => key.slice(-8, -4) === udp

/** What a transaction means for UDP flows. */
export function udpChanges(transaction: Transaction, state: DesiredState): ListChange[] {
  const changes: ListChange[] = []
  for (const [path, map] of listsIn(transaction.remove)) {
    const { family } = splitSetPath(path)
    for (const [element, endpoint] of map) {
      const key = element.slice(0, -4)
      if (isUdp(key) && !serves(state, { family, key, endpoint })) changes.push({ family, key, gone: endpoint })
    }
  }
  for (const { family, key, endpoint } of lostOutside(transaction, state, (_, key) => isUdp(key))) {
    changes.push({ family, key, gone: endpoint, onlyOutside: true })
  }
  for (const [path, map] of listsIn(transaction.add)) {
    const { family } = splitSetPath(path)
    for (const [key, arrivals] of arrivalsByKey(map)) {
      // All that are in the list came with this: it was empty, and flows passed by us.
      if (isUdp(key) && arrivals === state.endpointsOf(path, key).length) changes.push({ family, key, gone: undefined })
    }
  }
  return changes
}

const listsIn = (elements: Elements) =>
  [...elements].filter(([path]) => allListKinds.some(({ endpoints }) => endpoints === splitSetPath(path).name))

function arrivalsByKey(elements: ElementMap): Map<string, number> {
  const counts = new Map<string, number>()
  for (const element of elements.keys()) {
    const key = element.slice(0, -4)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Tells the flows that go to one of the changed keys, but not to an endpoint that they may stay with. */
export function staleness(changes: readonly ListChange[], state: DesiredState, ownAddresses: readonly string[]) {
  const changed = new Set(changes.map(({ family, key }) => `${family} ${key}`))
  const lost = new Set(
    changes.filter(({ onlyOutside }) => onlyOutside).map(({ family, key, gone }) => `${family} ${key}${gone}`),
  )
  const mayStay = (of: KeyEndpoint) => !lost.has(`${of.family} ${of.key}${of.endpoint}`) && serves(state, of)
  return ({ family, destination, destinationPort, answeredBy, answeredByPort, isRedirected }: Flow): boolean => {
    const endpoint = endpointData(answeredBy, answeredByPort)
    const key = serviceKey(destination, 'udp', destinationPort)
    if (changed.has(`${family} ${key}`)) {
      return !mayStay({ family, key, endpoint })
    }
    const nodePort = nodePortKey('udp', destinationPort)
    if (!changed.has(`${family} ${nodePort}`)) return false
    // Anybody's packets may go through this node to such a port of another machine.
    if (!isRedirected && !ownAddresses.includes(destination)) return false
    return !mayStay({ family, key: nodePort, endpoint })
  }
}

/** Every UDP list, as if all had changed: what left while nobody looked shows in the flows themselves. */
export function allUdpLists(lists: Iterable<readonly [SetPath, string]>): ListChange[] {
  const changes: ListChange[] = []
  for (const [path, key] of lists) {
    if (isUdp(key)) changes.push({ family: splitSetPath(path).family, key, gone: undefined })
  }
  return changes
}

/** The port in a service key or a node-port key. */
export const portOfKey = (key: string): number => (key.charCodeAt(key.length - 4) << 8) | key.charCodeAt(key.length - 3)

/** The arguments that make `conntrack` delete the flows of an endpoint that left. */
export function conntrackArguments({ family, key, gone }: ListChange): string[] | undefined {
  if (gone === undefined) return undefined
  const destination = key.length > 8 ? ['--orig-dst', formatAddress(key.slice(0, -8))] : []
  return [
    ...['-D', '-f', family === 'ip' ? 'ipv4' : 'ipv6', '-p', 'udp', ...destination],
    ...['--dport', String(portOfKey(key)), '--dst-nat', formatAddress(gone.slice(0, -4))],
  ]
}

/**
 * Deletes stale flows with the `conntrack` command, for machines where the kernel cannot be asked directly. Resolves with their
 * number, as far as the command tells it.
 */
export async function deleteFlowsByCommand(command: string, changes: readonly ListChange[]): Promise<number> {
  let deleted = 0
  for (const change of changes) {
    const args = conntrackArguments(change)
    // It exits with 1 when there is no such flow, which is the usual case.
    if (args) deleted += deletedIn((await runProgram(command, args, { limitMs: 30_000 })).errors)
  }
  return deleted
}

/** `conntrack v1.4.7 (conntrack-tools): 2 flow entries have been deleted.` */
export const deletedIn = (said: string): number => Number(/(\d+) flow entries have been deleted/.exec(said)?.[1] ?? 0)
