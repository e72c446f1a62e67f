// A core or a relay of the simulated cluster, in a process of its own. Some of its nodes are real connections from other processes; the others are in this process:
// they are worked out and encoded like the others, and only the socket is missing. Told by messages of the parent.
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { relayApi } from '@kpng/core/sources/api'
import { Store } from '@kpng/core/store'
import { View } from '@kpng/core/view'
import { ItemFrames } from '../../core/dist/sinks/api/item-frames.js'
import { makeCluster } from '../core/cluster.js'

const { services, endpoints, nodes, upstream } = JSON.parse(process.argv[2])
const cluster = upstream ? undefined : makeCluster({ services, endpoints, nodes })
const store = cluster?.store ?? new Store()
if (upstream) void relayApi({ store, api: upstream, log: silentLog, signal: new AbortController().signal })
const view = new View(store)
const server = await serveApi({ store, view, log: silentLog, listen: 'tcp://127.0.0.1:0' })
const frames = new ItemFrames(silentLog)
const clock = () => performance.timeOrigin + performance.now()

let told = 0
let awaited = 0
async function inProcessNode(index) {
  const watch = view.watchNode({ nodeName: `node-${index}` })
  for (let isFirst = true; ; isFirst = false) {
    const changeSet = await watch.next()
    // Its state is what the others have too: encoding it again and again would measure nothing.
    if (!isFirst) for (const _ of frames.of(changeSet));
    if (++told === awaited) process.send({ told: clock() })
  }
}

let pauseMs = 0
let lookedAt = performance.now()
let cpu = process.cpuUsage()
setInterval(() => {
  const now = performance.now()
  pauseMs = Math.max(pauseMs, now - lookedAt - 1)
  lookedAt = now
}, 1)

/** All endpoints of a third of the nodes are gone, in one update. */
function loseZone() {
  const isLost = ({ node }) => Number(node.split('-')[1]) % 3 === 0
  const slices = [...store.entries()].flatMap(({ namespace, name: service, sources }) =>
    [...sources].map(([name, all]) => ({ namespace, name, service, endpoints: all.filter((one) => !isLost(one)) })),
  )
  store.update((tx) => {
    for (const slice of slices) tx.setEndpoints(slice)
  })
}

store.onChange(() => upstream && process.send({ revision: store.revision, at: clock() }))

process.on('message', ({ inProcess, expect, change, zoneLost, report, fresh }) => {
  // What the wait before the change took is not counted.
  if (fresh) cpu = process.cpuUsage()
  if (inProcess) {
    told = 0
    awaited = inProcess.count
    for (let index = 0; index < inProcess.count; index++) void inProcessNode(inProcess.first + index)
  }
  if (expect) told = 0
  if (change !== undefined || zoneLost) {
    const at = clock()
    if (zoneLost) loseZone()
    else cluster.changeOne(change)
    process.send({ changed: store.revision, at })
  }
  if (report) {
    const { user, system } = process.cpuUsage(cpu)
    if (report === 'memory') globalThis.gc?.()
    process.send({ cpuMs: (user + system) / 1000, pauseMs, rssMb: process.memoryUsage.rss() / 2 ** 20 })
    cpu = process.cpuUsage()
    pauseMs = 0
  }
})
process.on('disconnect', () => process.exit())
while (!store.synced) await new Promise((resolve) => setTimeout(resolve, 20))
process.send({ address: server.address.replace('tcp://', '') })
