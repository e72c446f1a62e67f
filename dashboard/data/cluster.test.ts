import type { AgentStatus, LiveService, LiveSync } from '@kpng/api'
import { expect, test } from 'vitest'
import { liveRow } from '../testing/live-row.js'
import { randomNumbers } from '../testing/mock-cluster.js'
import * as cluster from './cluster.js'

const status: AgentStatus = {
  ...{ version: '1', node: 'a', role: 'node', startedAt: '', now: new Date().toISOString(), syncs: 0, failedSyncs: 0 },
  ...{ fullSyncs: 0, services: 0, endpoints: 0, frontends: 0, skippedObjects: 0, problems: [] },
}
const sync = (number: number): LiveSync => ({
  ...{ number, at: new Date().toISOString(), durationMs: 1, full: false, services: [], moreServices: 0 },
})
const shown = () => ({
  rows: cluster.allRows().map(({ key, service, searchText }) => ({ key, service, searchText })),
  counts: cluster.stateCounts.value,
  total: cluster.endpointTotal.value,
})

test('changes, one after the other, show the same as one snapshot of the end', () => {
  const random = randomNumbers(3)
  const states = ['serving', 'partly', 'refused'] as const
  const services = new Map<string, LiveService>()
  cluster.takeSnapshot({ status, services: [] })
  for (let event = 0; event < 300; event++) {
    const sent: Record<string, LiveService | null> = {}
    for (let change = 0; change < 3; change++) {
      const key = `ns-${Math.floor(random() * 5)}/web-${Math.floor(random() * 20)}`
      const ip = `10.96.0.${Math.floor(random() * 250)}`
      const verdict = states[Math.floor(random() * 3)] ?? 'serving'
      sent[key] = random() < 0.3 ? null : liveRow(key, { clusterIps: [ip], verdict, total: Math.floor(random() * 9) })
    }
    for (const [key, service] of Object.entries(sent)) {
      if (service) services.set(key, service)
      else services.delete(key)
    }
    cluster.takeChanges({ status, syncs: [], services: sent })
  }
  const incremental = shown()
  cluster.takeSnapshot({ status, services: [...services.values()] })
  expect(services.size).toBeGreaterThan(20)
  expect(incremental).toEqual(shown())
})

test('a sync that is sent again after a resume is shown once, and memory is bounded', () => {
  cluster.takeSnapshot({ status, services: [], changes: [sync(1), sync(2)] })
  cluster.takeChanges({ status, services: {}, syncs: [sync(2), sync(3)] })
  expect(cluster.allSyncs().map(({ number }) => number)).toEqual([1, 2, 3])
  for (let number = 4; number < 2000; number++) cluster.takeChanges({ status, services: {}, syncs: [sync(number)] })
  expect(cluster.allSyncs()).toHaveLength(600)
  const sample = { at: 1, syncs: 0, changes: 0, cpuMs: 1, memory: 1 }
  for (let second = 0; second < 400; second++) cluster.takePulse({ status, sample: { ...sample, at: second } })
  expect(cluster.samples.value).toHaveLength(300)
  expect(cluster.samples.value.at(-1)?.at).toBe(399)
})

test('where only used endpoints are known, nobody counts all of them', () => {
  cluster.takeSnapshot({ status, services: [liveRow('a/b', { total: 3 }), liveRow('a/c')] })
  expect(cluster.endpointTotal.value).toBeUndefined()
})

test('the nodes of a core come and go', () => {
  const node = (name: string) => ({ name, watchers: 1, revision: 1 })
  cluster.takeSnapshot({ status, services: [], nodes: [node('a'), node('b')] })
  cluster.takeChanges({ status, services: {}, syncs: [], nodes: { a: null, c: node('c') } })
  expect([...cluster.nodes.value.keys()]).toEqual(['b', 'c'])
})
