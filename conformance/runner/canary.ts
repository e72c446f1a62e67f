import { setTimeout as sleep } from 'node:timers/promises'
import type { Family } from '@kpng/api'
import { clusterIp } from '../addresses.js'
import type { KubernetesObject } from '../cases/case.js'
import { served, tcpPort } from '../cases/objects.js'
import type { Lab } from '../lab/lab.js'

// How the kit knows that a proxy has programmed a round without asking it: one Service has another port in each round. When the
// new port answers, what was fed with it is in place.

const number = 9999
const portOf = (round: number): number => 1000 + round

export const canaryObjects = (round: number): KubernetesObject[] =>
  served('canary', number, ['a1'], { ports: [tcpPort(portOf(round))] })

/** Resolves with how long it took in every family, in milliseconds, or with undefined when the time is over. */
export async function waitForCanary(
  lab: Lab,
  round: number,
  families: readonly Family[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const start = performance.now()
  for (const family of families) {
    const to = { protocol: 'TCP', ip: clusterIp(number)[family], port: portOf(round) } as const
    for (;;) {
      if (signal.aborted || performance.now() - start >= timeoutMs) return undefined
      const seen = await lab.agents['pod-a'].call('probe', { to, timeoutMs: 200 })
      if (seen.outcome === 'reached' && seen.server === 'a1') break
      await sleep(10)
    }
  }
  return performance.now() - start
}
