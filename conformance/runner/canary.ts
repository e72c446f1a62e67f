import { setTimeout as sleep } from 'node:timers/promises'
import type { Family } from '@kpng/api'
import type { Place } from '@kpng/linux/testing'
import { addressOf, clusterIp, type DualAddress, externalIp, type Host, ipsOf, type Server } from '../addresses.js'
import type { KubernetesObject } from '../cases/case.js'
import { served, serviceProxyName, serviceProxyNameLabel, tcpPort, udpPort } from '../cases/objects.js'
import type { Lab } from '../lab/lab.js'
import type { Pace } from './pace.js'

// How the kit knows that a proxy has programmed a round without asking it: one Service has another port in each round. When the
// new port answers, what was fed with it is in place. UDP clients in mid-flow may be moved a little later; so there is one client
// whose endpoint is another one in each round, and when it has moved, those that have not will stay.

export interface Canary {
  readonly address: DualAddress
  /** Who asks. */
  readonly client: Host
  readonly portOf: (round: number) => number
  /** The Service and its slices, as they are in a round. */
  objects(round: number): KubernetesObject[]
}

/** Not long: a SYN that came too early is sent again only after a second. */
const shortWaitMs = 200

/** The pause between two looks, as a multiple of the time that a look took: on a slow machine, looking keeps the proxy from working. */
const looksOfPause = 3
const leastPauseMs = 10
const longestPauseMs = 300

const mainNumber = 9999
const flowNumber = 9998
const nodeBNumber = 9997
const specialisedNumber = 254

const portOf = (round: number): number => 1000 + round
/** Cases have no node ports from here on. */
const nodePortOf = (round: number): number => 32_000 + round

/** Where a canary is served in a round. */
export const placeOf = ({ address, portOf }: Canary, round: number, family: Family): Place => ({
  protocol: 'TCP',
  ip: address[family],
  port: portOf(round),
})

export const mainCanary: Canary = {
  address: clusterIp(mainNumber),
  client: 'pod-a',
  portOf,
  objects: (round) => [
    ...served('canary-flow', flowNumber, [flowServer(round)], { ports: [udpPort(80)] }),
    ...served('canary', mainNumber, ['a1'], { ports: [tcpPort(portOf(round))] }),
  ],
}

const flowServer = (round: number): Server => (round % 2 === 0 ? 'a1' : 'a2')

/** It has no cluster IP: whether a specialised proxy may have those beside the main one is for the cases to prove. */
export const specialisedCanary: Canary = {
  address: externalIp(specialisedNumber),
  client: 'pod-a',
  portOf,
  objects: (round) =>
    served('specialised-canary', specialisedNumber, ['a1'], {
      ports: [tcpPort(portOf(round))],
      labels: { [serviceProxyNameLabel]: serviceProxyName },
      spec: {
        clusterIP: 'None',
        clusterIPs: ['None'],
        externalIPs: ipsOf(externalIp(specialisedNumber)),
      },
    }),
}

/** Only node-b itself serves node ports at its address; its other packets might be served by node-a. */
export const nodeBCanary: Canary = {
  address: addressOf['node-b'],
  client: 'pod-b',
  portOf: nodePortOf,
  objects: (round) =>
    served('canary-node-b', nodeBNumber, ['b1'], {
      ports: [tcpPort(80, { nodePort: nodePortOf(round) })],
      spec: { type: 'NodePort' },
    }),
}

/** Resolves with how long it took in every family, in milliseconds, or with undefined when the time is over. */
export const waitForCanary = (wait: Wait, canary: Canary, round: number): Promise<number | undefined> =>
  waitFor(wait, canary === nodeBCanary ? 'b1' : 'a1', canary.client, (family) => ({
    to: placeOf(canary, round, family),
  }))

/** As `waitForCanary`, until the proxy under test has moved the UDP client whose endpoint changed. */
export const waitForMovedFlow = (wait: Wait, round: number): Promise<number | undefined> =>
  waitFor(wait, flowServer(round), 'pod-a', (family) => ({
    to: { protocol: 'UDP', ip: clusterIp(flowNumber)[family], port: 80 },
    flow: `canary.${family}`,
    keepGoing: true,
  }))

export interface Wait {
  readonly lab: Lab
  readonly pace: Pace
  readonly families: readonly Family[]
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

async function waitFor(
  { lab, pace, families, timeoutMs, signal }: Wait,
  server: Server,
  client: Host,
  probeIn: (family: Family) => { to: Place; flow?: string; keepGoing?: boolean },
): Promise<number | undefined> {
  const start = performance.now()
  for (const family of families) {
    for (;;) {
      if (signal.aborted || performance.now() - start >= pace.scaled(timeoutMs)) return undefined
      const [seen, controlMs] = await Promise.all([
        lab.agents[client].call('probe', { ...probeIn(family), timeoutMs: pace.scaled(shortWaitMs) }),
        pace.measure(client, family),
      ])
      if (seen.outcome === 'reached' && seen.server === server) break
      await sleep(Math.min(longestPauseMs, Math.max(leastPauseMs, looksOfPause * controlMs)))
    }
  }
  return performance.now() - start
}
