// The reader of the benchmark, in its own process so that its peak memory can be measured: kpng's Kubernetes source and a store.
//
// node reader.js <url> <slices> <changes>
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../../api/dist/index.js'
import { loadConnection, watchKube } from '../../core/dist/sources/kube/index.js'
import { Store } from '../../core/dist/store/index.js'

const [url, slices, changes] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const connection = await loadConnection({ server: url, env: {}, home: '/nonexistent' })
const store = new Store()
const stop = new AbortController()
let apiEvents = 0
const rssBefore = process.memoryUsage.rss()
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()

const startedAt = performance.now()
const cpuBefore = process.cpuUsage()
const synced = new Promise((resolve) => {
  const leave = store.onChange(() => {
    if (!store.synced) return
    leave()
    resolve()
  })
})
const done = watchKube({ store, log: silentLog, connection, signal: stop.signal, onEvent: () => apiEvents++ })
await synced
const syncedMs = performance.now() - startedAt
const { user, system } = process.cpuUsage(cpuBefore)
// The event loop must turn once more for the last delay to be seen.
await sleep(20)
delay.disable()
const peakRssMb = process.resourceUsage().maxRSS / 1024
const endpoints = store.entries().reduce((sum, { sources }) => sum + [...sources.values()].flat().length, 0)

const latenciesMs = []
for (let index = 0; index < changes; index++) {
  const slice = Math.floor(Math.random() * slices)
  const seen = new Promise((resolve) => {
    const leave = store.onChange(() => {
      leave()
      resolve(performance.timeOrigin + performance.now())
    })
  })
  await (await fetch(`${url}/change?slice=${slice}`)).text()
  const at = await seen
  const hostname = store.entry(`default/service-${slice}`)?.sources.get(`service-${slice}-abcde`)?.[0]?.hostname ?? ''
  latenciesMs.push(at - Number(hostname.slice(2)) / 1000)
}

// Everything changed while the watch was lost.
const relistDelay = monitorEventLoopDelay({ resolution: 1 })
relistDelay.enable()
const { revision } = store
await (await fetch(`${url}/expire`)).text()
while (store.revision === revision) await sleep(5)
await sleep(20)
relistDelay.disable()

latenciesMs.sort((a, b) => a - b)
const at = (share) => latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))]

process.send?.({
  rssBeforeMb: rssBefore / 1048576,
  peakRssMb,
  longestBlockMs: delay.max / 1e6,
  syncedMs,
  cpuMs: (user + system) / 1000,
  endpoints,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
  relistPeakRssMb: process.resourceUsage().maxRSS / 1024,
  relistBlockMs: relistDelay.max / 1e6,
  relistRevisions: store.revision - revision,
  apiEvents,
  storeRevisions: store.revision,
})
stop.abort()
await done
await connection.close()
process.disconnect?.()
