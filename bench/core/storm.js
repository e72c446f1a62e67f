// One update takes half their endpoints from all services while many nodes watch: how long is the event loop blocked, and when does the last watcher
// know everything? The server is in this process, so that its event loop can be looked at; the watchers are in another. See README.md.
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { makeCluster } from './cluster.js'
import { message, sleep } from './process.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '5000' },
    endpoints: { type: 'string', default: '10' },
    watchers: { type: 'string', default: '200' },
  },
})
const watchers = Number(values.watchers)
const endpoints = Number(values.endpoints)
const cluster = makeCluster({ services: Number(values.services), endpoints, nodes: Math.max(100, watchers) })
// All nodes of a benchmark have one address.
const limits = { maxConnectionsPerPeer: 20_000 }
const server = await serveApi({ store: cluster.store, log: silentLog, listen: 'tcp://127.0.0.1:0', limits })
const swarm = fork(new URL('watchers.js', import.meta.url).pathname, [server.address.replace('tcp://', '')])
await message(swarm, 'ready')
swarm.send({ connect: watchers })
await message(swarm, 'all')
swarm.send({ ask: true })
await message(swarm, 'asked')
await sleep(500)

/** The longest time between two looks of the event loop at its timers. */
let longestPause = 0
let last = performance.now()
const look = () => {
  const now = performance.now()
  longestPause = Math.max(longestPause, now - last)
  last = now
  setTimeout(look, 1)
}
look()
const all = message(swarm, 'all')
const began = performance.timeOrigin + performance.now()
const before = process.cpuUsage()
cluster.keepOnly(endpoints / 2)
const updateMs = performance.timeOrigin + performance.now() - began
const allMs = (await all).all - began
const { user, system } = process.cpuUsage(before)
console.log(
  `${values.services} services lose half of ${endpoints} endpoints, ${watchers} watchers: all up to date after ${(allMs / 1000).toFixed(2)} s, longest pause of the event loop ${longestPause.toFixed(0)} ms (the update itself ${updateMs.toFixed(0)} ms), CPU ${((user + system) / 1e6).toFixed(2)} s`,
)
swarm.kill()
process.exit(0)
