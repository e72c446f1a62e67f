// The server of herd.js in a process of its own: it changes an endpoint when it is told to, and says what it cost.
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { makeCluster } from './cluster.js'
import { watchPauses } from './pauses.js'

const [services, endpoints, nodes] = process.argv.slice(2).map(Number)
const cluster = makeCluster({ services, endpoints, nodes })
const log = { ...silentLog, warn: (...said) => console.error(...said) }
// All nodes of a benchmark have one address.
const limits = { maxConnectionsPerPeer: 20_000 }
const server = await serveApi({ store: cluster.store, log, listen: 'tcp://127.0.0.1:0', limits })

let cpu = process.cpuUsage()
const longestPause = watchPauses()

process.on('message', ({ change, report }) => {
  if (change !== undefined) cluster.changeOne(change)
  if (report) {
    const { user, system } = process.cpuUsage(cpu)
    cpu = process.cpuUsage()
    process.send({ cpuMs: (user + system) / 1000, ...longestPause(), rssMb: process.memoryUsage.rss() / 2 ** 20 })
  }
})
process.on('disconnect', () => process.exit())
process.send({ address: server.address.replace('tcp://', '') })
