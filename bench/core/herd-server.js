// The server of herd.js in a process of its own: it looks at its event loop every millisecond, and changes an endpoint when it is told to.
import { silentLog } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import { makeCluster } from './cluster.js'

const [services, endpoints, nodes] = process.argv.slice(2).map(Number)
const cluster = makeCluster({ services, endpoints, nodes })
const server = await serveApi({ store: cluster.store, log: silentLog, listen: 'tcp://127.0.0.1:0' })

let pauses = []
let last = performance.now()
let cpu = process.cpuUsage()
const look = () => {
  const now = performance.now()
  if (now - last > 20) pauses.push(now - last)
  last = now
  setTimeout(look, 1)
}
look()

process.on('message', ({ change, report }) => {
  if (change !== undefined) cluster.changeOne(change)
  if (report) {
    const { user, system } = process.cpuUsage(cpu)
    cpu = process.cpuUsage()
    pauses.sort((a, b) => b - a)
    process.send({ cpuMs: (user + system) / 1000, pauseMs: pauses[0] ?? 0, rssMb: process.memoryUsage.rss() / 2 ** 20 })
    pauses = []
    last = performance.now()
  }
})
process.on('disconnect', () => process.exit())
process.send({ address: server.address.replace('tcp://', '') })
