// One measurement, in a network namespace of its own: everything into IPVS, again, then change after change.
// Arguments: services, endpoints each, changes. Prints JSON.
import { performance } from 'node:perf_hooks'
import { ipvsBackend } from '../../backends/ipvs/dist/index.js'
import { changeOne, makeView, nothing, stepNames } from '../nft/view.js'

const [services, endpointsEach, changes] = process.argv.slice(2).map(Number)

const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
const quantile = (values, share) => values[Math.min(values.length - 1, Math.floor(values.length * share))]

async function timed(work) {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const view = makeView(services, endpointsEach)
const start = async () => {
  const backend = ipvsBackend({ driftCheckIntervalMs: 0 })
  await backend.setup({ requestFullSync: () => {} })
  return backend
}
const first = await start()
const loadMs = await timed(() => first.sync(view, { ...nothing, full: true }))
await first.close()
const backend = await start()
const adoptMs = await timed(() => backend.sync(view, { ...nothing, full: true }))
// The first changes also compile the code that they run.
for (let index = 0; index < 30; index++) await backend.sync(view, changeOne(view, index, stepNames[index % 3]))
const latencies = []
const cpuBefore = cpuMs()
for (let index = 0; index < changes; index++) {
  const change = changeOne(view, index * 7, stepNames[index % stepNames.length])
  latencies.push(await timed(() => backend.sync(view, change)))
}
const cpuMsPerChange = (cpuMs() - cpuBefore) / changes
latencies.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    ...{ services, endpointsEach, changes, loadMs, adoptMs, cpuMsPerChange },
    ...{ p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) },
    residentMegabytes: Math.round(process.memoryUsage().rss / 1e6),
  }),
)
process.exit(0)
