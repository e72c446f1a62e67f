// A core or a relay of the simulated cluster, in a process of its own. Told by messages of the parent.
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { relayApi } from '@kpng/core/sources/api'
import { Store } from '@kpng/core/store'
import { makeCluster } from '../core/cluster.js'
import { watchPauses } from '../core/pauses.js'

const { services, endpoints, nodes, upstream } = JSON.parse(process.argv[2])
const cluster = upstream ? undefined : makeCluster({ services, endpoints, nodes })
const store = cluster?.store ?? new Store()
const log = { ...silentLog, warn: (...said) => console.error(...said) }
if (upstream) void relayApi({ store, api: upstream, log, signal: new AbortController().signal })
// All nodes of a benchmark have one address.
const limits = { maxConnectionsPerPeer: 20_000 }
const server = await serveApi({ store, log, listen: 'tcp://127.0.0.1:0', limits })
const clock = () => performance.timeOrigin + performance.now()

const longestPause = watchPauses()
let cpu = process.cpuUsage()

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

process.on('message', ({ change, zoneLost, report }) => {
  if (change !== undefined || zoneLost) {
    const at = clock()
    if (zoneLost) loseZone()
    else cluster.changeOne(change)
    process.send({ changed: store.revision, at })
  }
  if (report) {
    if (report === 'memory') globalThis.gc?.()
    const { user, system } = process.cpuUsage(cpu)
    process.send({ cpuMs: (user + system) / 1000, ...longestPause(), rssMb: process.memoryUsage.rss() / 2 ** 20 })
    cpu = process.cpuUsage()
  }
})
process.on('disconnect', () => process.exit())
while (!store.synced) await new Promise((resolve) => setTimeout(resolve, 20))
process.send({ address: server.address.replace('tcp://', '') })
