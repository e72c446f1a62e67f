// What a connection costs: directly to an endpoint, through nftables, and through eBPF with nftables underneath. In turns, with client and
// server on one core. Needs root, gcc, nft, iproute2, util-linux, and a build (`npm run build`).
//   node bench/ebpf/cost.js [--rounds 30] [--services 1000] [--core 1]
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { quantile, Sandbox } from './sandbox.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '30' },
    services: { type: 'string', default: '1000' },
    core: { type: 'string', default: '1' },
  },
})
const core = Number(values.core)
const sandbox = new Sandbox(['sockets', 'packets'])
const ways = {
  direct: { cgroup: 'packets', to: ['10.9.9.1', '7000'] },
  nft: { cgroup: 'packets', to: ['10.96.0.1', '80'] },
  ebpf: { cgroup: 'sockets', to: ['10.96.0.1', '80'] },
}
const results = Object.fromEntries(Object.keys(ways).map((way) => [way, { perSecond: [], cpuUs: [], cpuUsPerMib: [] }]))
let failed = 0
try {
  await sandbox.serve('0.0.0.0', 7000, 1, core)
  const script = fileURLToPath(new URL('proxy.js', import.meta.url))
  const proxy = sandbox.start([process.execPath, script, sandbox.cgroups.sockets, sandbox.bpffs, values.services])
  await once(proxy.lines, 'line')
  for (let round = 0; round < Number(values.rounds); round++) {
    for (let turn = 0; turn < 3; turn++) {
      const way = Object.keys(ways)[(round + turn) % 3]
      const { cgroup, to } = ways[way]
      const connected = await sandbox.run([sandbox.traffic, 'connect', ...to, '1000'], { cgroup, core })
      const sent = await sandbox.run([sandbox.traffic, 'bulk', ...to, '100'], { cgroup, core })
      failed += connected.failed
      results[way].perSecond.push(connected.perSecond)
      results[way].cpuUs.push(connected.cpuUs)
      results[way].cpuUsPerMib.push(sent.cpuUsPerMib)
    }
  }
} finally {
  await sandbox.remove()
}

// Others may use the machine. The best tenth is what it costs when they do not; the quartiles of the ratios of each round show how much they disturb.
const best = (way, field) => quantile(results[way][field], field === 'perSecond' ? 0.9 : 0.1)
console.log(`${values.rounds} rounds of 1,000 connections and 100 MiB; best tenth; ${failed} connections failed\n`)
console.log('| way | connections/s | client CPU µs per connection | client CPU µs per MiB |\n|---|---|---|---|')
for (const way of Object.keys(ways)) {
  const cells = ['perSecond', 'cpuUs', 'cpuUsPerMib'].map((field) =>
    best(way, field).toFixed(field === 'cpuUs' ? 1 : 0),
  )
  console.log(`| ${way} | ${cells.join(' | ')} |`)
}
console.log('\n| ratio | connections/s | CPU per connection | CPU per MiB |\n|---|---|---|---|')
for (const [one, other] of [
  ['ebpf', 'nft'],
  ['ebpf', 'direct'],
  ['nft', 'direct'],
]) {
  const cells = ['perSecond', 'cpuUs', 'cpuUsPerMib'].map((field) => {
    const ratios = results[one][field].map((value, round) => value / results[other][field][round])
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(2))
    return `${(best(one, field) / best(other, field)).toFixed(2)} (of rounds: ${low}, ${middle}, ${high})`
  })
  console.log(`| ${one} / ${other} | ${cells.join(' | ')} |`)
}
