import type { Operation } from './ipvs-messages.js'
import type { Destination, ServerAddress, VirtualServer } from './virtual-servers.js'

/** A virtual server as kpng knows it to be in the kernel. */
export interface KnownServer {
  readonly server: ServerAddress
  scheduler: string
  persistenceSeconds: number
  /** By `endpointKey`. */
  readonly destinations: Map<string, KnownDestination>
}

export interface KnownDestination extends Destination {
  weight: number
}

/** Operations of one virtual server. */
export interface ServerOperations {
  readonly operations: readonly Operation[]
  /** Destinations that wait for the end of their connections, by `endpointKey`. */
  readonly retired: readonly string[]
}

/**
 * What makes a virtual server as it should be, and nothing more. A destination that is no longer wanted gets weight 0: it keeps its
 * connections and gets no new ones. A UDP client that pauses and comes back would still be sent there, so for UDP it is removed at
 * once, unless the endpoint still serves.
 */
export function operationsFor(wanted: VirtualServer, known: KnownServer | undefined): ServerOperations {
  const operations: Operation[] = []
  const retired: string[] = []
  if (!known) operations.push({ do: 'newService', server: wanted })
  else if (known.scheduler !== wanted.scheduler || known.persistenceSeconds !== wanted.persistenceSeconds) {
    operations.push({ do: 'setService', server: wanted })
  }
  for (const [key, destination] of wanted.destinations) {
    const weight = known?.destinations.get(key)?.weight
    if (weight === undefined) operations.push({ do: 'newDest', server: wanted, destination, weight: 1 })
    else if (weight !== 1) operations.push({ do: 'setDest', server: wanted, destination, weight: 1 })
  }
  for (const [key, destination] of known?.destinations ?? []) {
    if (wanted.destinations.has(key)) continue
    if (wanted.protocol === 'udp' && !wanted.mayKeepClients.has(key)) {
      operations.push({ do: 'deleteDest', server: wanted, destination })
      continue
    }
    if (destination.weight !== 0) operations.push({ do: 'setDest', server: wanted, destination, weight: 0 })
    retired.push(key)
  }
  return { operations, retired }
}

/** The virtual server after its operations. */
export function knownAfter(
  wanted: VirtualServer,
  known: KnownServer | undefined,
  retired: readonly string[],
): KnownServer {
  const destinations = new Map<string, KnownDestination>()
  for (const [key, { ip, port }] of wanted.destinations) destinations.set(key, { ip, port, weight: 1 })
  for (const key of retired) {
    const before = known?.destinations.get(key)
    if (before) destinations.set(key, { ...before, weight: 0 })
  }
  const { scheduler, persistenceSeconds } = wanted
  return { server: wanted, scheduler, persistenceSeconds, destinations }
}

/** What makes a virtual server again as it was. */
export function operationsToMake({ server, scheduler, persistenceSeconds, destinations }: KnownServer): Operation[] {
  return [
    { do: 'newService', server: { ...server, scheduler, persistenceSeconds } },
    ...[...destinations.values()].map((destination) => ({
      ...{ do: 'newDest' as const, server, destination },
      weight: destination.weight,
    })),
  ]
}
