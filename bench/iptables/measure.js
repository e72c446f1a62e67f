// One measurement, in a network namespace of its own: everything into the kernel, then change after change.
// Arguments: kpng or kube-proxy, nft or legacy, services, endpoints each, changes. Prints JSON.
import { performance } from 'node:perf_hooks'
import { iptablesBackend } from '@kpng/backend-iptables'
import { cpuMs } from '../core/process.js'
import { changeOne, makeView, nothing, stepNames } from '../nft/view.js'
import { KubeProxyRules } from './kube-proxy-rules.js'

const [proxy, flavour, ...numbers] = process.argv.slice(2)
const [services, endpointsEach, changes] = numbers.map(Number)

async function timed(work) {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const view = makeView(services, endpointsEach)
const backend =
  proxy === 'kpng' ? iptablesBackend({ flavour, ipv6: false, driftCheckIntervalMs: 0 }) : new KubeProxyRules(flavour)
await backend.setup({ requestFullSync: () => {} })
const full = { ...nothing, full: true }
const before = cpuMs(process.pid)
const startMs = await timed(() => backend.sync(view, full))
const startCpuMs = cpuMs(process.pid) - before
const restartMs = await timed(() => backend.sync(view, full))

// The first change of each kind also compiles the code that it runs.
for (let index = 0; index < 3; index++) await backend.sync(view, changeOne(view, index, stepNames[index % 3]))
const latencies = []
const cpuBefore = cpuMs(process.pid)
for (let index = 0; index < changes; index++) {
  const change = changeOne(view, index * 7, stepNames[index % stepNames.length])
  latencies.push(await timed(() => backend.sync(view, change)))
}
const changeCpuMs = (cpuMs(process.pid) - cpuBefore) / changes
latencies.sort((a, b) => a - b)
const quantile = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]
const results = { startMs, startCpuMs, restartMs, p50Ms: quantile(0.5), p99Ms: quantile(0.99), changeCpuMs }
console.log(JSON.stringify({ proxy, flavour, services, ...results }))
process.exit(0)
