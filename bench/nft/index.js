// Start and change through both writers, at several sizes, side by side. Needs root, nft, and a build (`npm run build`).
//   node bench/nft/index.js [--sizes 100,1000,5000,10000] [--endpoints 10] [--writers netlink,nft] [--json]
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '100,1000,5000,10000' },
    endpoints: { type: 'string', default: '10' },
    writers: { type: 'string', default: 'netlink,nft' },
    json: { type: 'boolean', default: false },
  },
})

const script = fileURLToPath(new URL('measure.js', import.meta.url))

/** Runs a measurement where no rule of the machine's own is touched. */
function measure(writer, services) {
  const changes = writer === 'nft' ? 60 : 600
  const args = ['--net', process.execPath, script, writer, String(services), values.endpoints, String(changes)]
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The measurement of ${services} services through ${writer} failed:\n${stderr}`)
  return JSON.parse(stdout)
}

const results = []
for (const services of values.sizes.split(','))
  for (const writer of values.writers.split(',')) results.push(measure(writer, Number(services)))

const ms = (value) => value.toFixed(value < 10 ? 2 : 0)
const header = [
  'writer',
  'services',
  'load ms',
  'load CPU ms',
  'adopt ms',
  'change p50 ms',
  'p99 ms',
  'CPU ms/change',
  'RSS MB',
  'view MB',
]
const row = (result) => [
  result.writer,
  `${result.services} × ${result.endpointsEach}`,
  ms(result.loadMs),
  ms(result.loadCpuMs),
  ms(result.adoptMs),
  ms(result.p50Ms),
  ms(result.p99Ms),
  ms(result.cpuMsPerChange),
  result.residentMegabytes,
  result.viewMegabytes,
]

if (values.json) console.log(JSON.stringify(results, null, 2))
else {
  console.log(`| ${header.join(' | ')} |\n|${header.map(() => '---|').join('')}`)
  for (const result of results) console.log(`| ${row(result).join(' | ')} |`)
  for (const writer of values.writers.split(',')) {
    const own = results.filter((result) => result.writer === writer)
    if (own.length < 2) continue
    const [first, last] = [own[0], own.at(-1)]
    console.log(
      `${writer}: a change at ${last.services} services takes ${(last.p50Ms / first.p50Ms).toFixed(2)} times as long as at ${first.services}`,
    )
  }
}
