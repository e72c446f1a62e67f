import { setTimeout as sleep } from 'node:timers/promises'
import { families as allFamilies, type Family } from '@kpng/api'
import { clusterIp, type DualAddress, externalIp } from '../addresses.js'
import type { KubernetesObject } from '../cases/case.js'
import { served, serviceProxyName, serviceProxyNameLabel, tcpPort } from '../cases/objects.js'
import type { Lab } from '../lab/lab.js'

// How the kit knows that a proxy has programmed a round without asking it: one Service has another port in each round. When the
// new port answers, what was fed with it is in place.

export interface Canary {
  readonly address: DualAddress
  /** The Service and its slices, as they are in a round. */
  objects(round: number): KubernetesObject[]
}

const mainNumber = 9999
const specialisedNumber = 254

const portOf = (round: number): number => 1000 + round

export const mainCanary: Canary = {
  address: clusterIp(mainNumber),
  objects: (round) => served('canary', mainNumber, ['a1'], { ports: [tcpPort(portOf(round))] }),
}

/** It has no cluster IP: whether a specialised proxy may have those beside the main one is for the cases to prove. */
export const specialisedCanary: Canary = {
  address: externalIp(specialisedNumber),
  objects: (round) =>
    served('specialised-canary', specialisedNumber, ['a1'], {
      ports: [tcpPort(portOf(round))],
      labels: { [serviceProxyNameLabel]: serviceProxyName },
      spec: {
        clusterIP: 'None',
        clusterIPs: ['None'],
        externalIPs: allFamilies.map((family) => externalIp(specialisedNumber)[family]),
      },
    }),
}

/** Resolves with how long it took in every family, in milliseconds, or with undefined when the time is over. */
export async function waitForCanary(
  lab: Lab,
  { address }: Canary,
  round: number,
  families: readonly Family[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const start = performance.now()
  for (const family of families) {
    const to = { protocol: 'TCP', ip: address[family], port: portOf(round) } as const
    for (;;) {
      if (signal.aborted || performance.now() - start >= timeoutMs) return undefined
      const seen = await lab.agents['pod-a'].call('probe', { to, timeoutMs: 200 })
      if (seen.outcome === 'reached' && seen.server === 'a1') break
      await sleep(10)
    }
  }
  return performance.now() - start
}
