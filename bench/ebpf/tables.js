// Filling and changing the maps, without nftables and without traffic. Needs root and a build (`npm run build`).
//   node bench/ebpf/tables.js [--services 10000] [--endpoints 10] [--runs 5]
import { parseArgs } from 'node:util'
import { loadBpf } from '@kpng/linux/bpf'
import { createMaps, tableMaps } from '../../backends/ebpf/dist/kernel/maps.js'
import { frontendKeyOf, shapesFor, sizesFor } from '../../backends/ebpf/dist/layout.js'
import { keyText } from '../../backends/ebpf/dist/tables/hash-table.js'
import { Tables } from '../../backends/ebpf/dist/tables/tables.js'
import { quantile } from './sandbox.js'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '10000' },
    endpoints: { type: 'string', default: '10' },
    runs: { type: 'string', default: '5' },
  },
})
const [services, each] = [Number(values.services), Number(values.endpoints)]
const sys = await loadBpf()
const sizes = sizesFor(131_072, false)

const entryOf = (service, from = 1) => ({
  key: keyText(frontendKeyOf(`10.200.${service >> 8}.${service & 255}`, 80)),
  endpoints: Array.from({ length: each }, (_, at) => ({
    ip: `10.${1 + (service >> 8)}.${service & 255}.${from + at}`,
    port: 8080,
  })),
  affinitySeconds: 0,
})

const measured = { load: [], adopt: [], change: [] }
for (let run = 0; run < Number(values.runs); run++) {
  const maps = createMaps(sys, shapesFor(sizes), undefined)
  const entries = new Map(
    Array.from({ length: services }, (_, service) => entryOf(service)).map((entry) => [entry.key, entry]),
  )
  const timed = async (name, work) => {
    const [start, cpu] = [performance.now(), process.cpuUsage()]
    const result = await work()
    const { user, system } = process.cpuUsage(cpu)
    measured[name].push({ wall: performance.now() - start, cpu: (user + system) / 1000 })
    return result
  }
  const tables = new Tables(tableMaps(sys, maps, sizes), { balancing: 'random' })
  const written = await timed('load', () => tables.load(entries))
  const again = await timed('adopt', () =>
    new Tables(tableMaps(sys, maps, sizes), { balancing: 'random' }).load(entries),
  )
  if (written !== services || again !== 0 || tables.leftOut.size > 0)
    throw new Error('The tables are not as they should be.')
  // Another endpoint in one Service of ten, again and again.
  const changes = Array.from({ length: 10_000 }, (_, index) => entryOf((index * 7) % services, 2 + (index % 200)))
  await timed('change', async () => {
    for (const [index, entry] of changes.entries()) {
      await tables.change([[entry.key, entry]])
      // As between two syncs: grace periods end meanwhile.
      if (index % 100 === 99) await new Promise((resolve) => setImmediate(resolve))
    }
  })
  await tables.close()
  for (const map of Object.values(maps)) map.close()
}
// Wall time depends on who else uses the machine; CPU time less so.
const show = (name, per, unit) => {
  const cells = ['wall', 'cpu'].map((kind) => {
    const all = measured[name].map((one) => one[kind] / per)
    const [low, middle, high] = [0, 0.5, 1].map((share) => quantile(all, share).toFixed(unit === 'ms' ? 0 : 1))
    return `${middle} ${unit} (${low} to ${high})`
  })
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}
console.log(
  `${services} Services of ${each} endpoints, ${values.runs} runs: median (range)\n\n| what | wall | CPU |\n|---|---|---|`,
)
show('load', 1, 'ms')
show('adopt', 1, 'ms')
show('change', 10, 'µs')
