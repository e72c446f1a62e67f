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
/** By kind of change: how many netlink messages it took. */
const messages = {}
const cpuBefore = cpuMs()
for (let index = 0; index < changes; index++) {
  const kind = stepNames[index % stepNames.length]
  const change = changeOne(view, index * 7, kind)
  const steps = []
  latencies.push(await timed(() => backend.sync(view, change, steps)))
  const written = steps.filter(({ name }) => name === 'ipvs').map(({ attributes }) => attributes['kpng.operations'])
  messages[kind] = [...new Set([...(messages[kind] ?? []), written.join('+')])]
}
const cpuMsPerChange = (cpuMs() - cpuBefore) / changes
latencies.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    ...{ services, endpointsEach, changes, loadMs, adoptMs, cpuMsPerChange, messages },
    ...{ p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) },
    residentMegabytes: Math.round(process.memoryUsage().rss / 1e6),
  }),
)
process.exit(0)
