// One measurement, in a network namespace of its own: everything into the kernel, then change after change.
// Arguments: a built checkout of kpng, services, endpoints each, changes. Prints JSON.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { changeOne, makeView, nothing, stepNames } from './view.js'

const [checkout, services, endpointsEach, changes] = process.argv
  .slice(2)
  .map((text) => (/^\d+$/.test(text) ? Number(text) : text))

/** CPU seconds of this process and of the commands that it ran. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage()
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (user + system) / 1e6 + (Number(fields[13]) + Number(fields[14])) / 100
}

const residentMegabytes = () => Math.round(process.memoryUsage().rss / 1e6)

const quantile = (values, share) => values[Math.min(values.length - 1, Math.floor(values.length * share))]

async function timed(work) {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const { nftBackend } = await import(pathToFileURL(join(checkout, 'backends/nft/dist/index.js')).href)
const view = makeView(services, endpointsEach)
const viewMegabytes = residentMegabytes()
const backend = nftBackend()
const setupMs = await timed(() => backend.setup({ requestFullSync: () => {} }))
const cpuAtStart = cpuSeconds()
const loadMs = await timed(() => backend.sync(view, { ...nothing, full: true }))
const loadCpuMs = (cpuSeconds() - cpuAtStart) * 1000
const adoptMs = await timed(() => backend.sync(view, { ...nothing, full: true }))

const latencies = []
const byStep = Object.fromEntries(stepNames.map((step) => [step, []]))
// The first change of each kind also compiles the code that it runs.
for (let index = 0; index < 30; index++) await backend.sync(view, changeOne(view, index, stepNames[index % 3]))
const cpuBefore = cpuSeconds()
for (let index = 0; index < changes; index++) {
  const step = stepNames[index % stepNames.length]
  const change = changeOne(view, index * 7, step)
  const ms = await timed(() => backend.sync(view, change))
  latencies.push(ms)
  byStep[step].push(ms)
}
const cpuMsPerChange = ((cpuSeconds() - cpuBefore) * 1000) / changes
const sorted = (values) => [...values].sort((a, b) => a - b)
const all = sorted(latencies)
console.log(
  JSON.stringify({
    ...{ services, endpointsEach, changes, setupMs, loadMs, loadCpuMs, adoptMs, cpuMsPerChange },
    ...{ p50Ms: quantile(all, 0.5), p99Ms: quantile(all, 0.99), maxMs: all.at(-1) },
    p50ByStep: Object.fromEntries(stepNames.map((step) => [step, quantile(sorted(byStep[step]), 0.5)])),
    ...{ viewMegabytes, residentMegabytes: residentMegabytes() },
  }),
)
process.exit(0)
