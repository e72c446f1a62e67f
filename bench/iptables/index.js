// Start, restart and change in both flavours, beside the rules that kube-proxy writes for the same Services, or beside kube-proxy itself.
// Needs root, both flavours of iptables, and a build (`npm run build`). See README.md.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const path = (name) => fileURLToPath(new URL(name, import.meta.url))
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,5000' },
    endpoints: { type: 'string', default: '10' },
    flavours: { type: 'string', default: 'legacy,nft' },
    runs: { type: 'string', default: '3' },
    changes: { type: 'string', default: '20' },
    limit: { type: 'string', default: '120' },
    peer: { type: 'string' },
    kpng: { type: 'string', default: `${process.execPath} ${path('../../cli/bin/kpng.js')}` },
    json: { type: 'boolean', default: false },
  },
})
/** Nothing that a measurement starts outlives it. */
const apart = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc']

/** Runs a measurement where no rule of the machine's own is touched. Undefined if it takes longer than the limit. */
function measure(proxy, flavour, services) {
  const program = values.peer
    ? [path('process-measure.js'), proxy, proxy === 'kpng' ? values.kpng : values.peer]
    : [path('measure.js'), proxy]
  const args = [...apart, process.execPath, ...program, flavour, services, values.endpoints, values.changes]
  const timeout = Number(values.limit) * 1000
  const { status, signal, stdout, stderr } = spawnSync('unshare', args, {
    encoding: 'utf8',
    timeout,
    killSignal: 'SIGKILL',
  })
  if (signal !== null) return undefined
  if (status !== 0) throw new Error(`The measurement of ${services} services failed:\n${stderr}`)
  return JSON.parse(stdout)
}

const fields = {
  startMs: 'start ms',
  startCpuMs: 'start CPU ms',
  restartMs: 'restart ms',
  p50Ms: 'change p50 ms',
  p99Ms: 'p99 ms',
  changeCpuMs: 'CPU ms/change',
}
const names = Object.keys(fields)
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]
const spread = (numbers) => `${Math.min(...numbers).toFixed(2)}–${Math.max(...numbers).toFixed(2)}`

const results = []
console.log(
  `| services | flavour | ${values.peer ? 'proxy' : 'rules of'} | ${Object.values(fields).join(' | ')} |\n|---|---|---|${'---|'.repeat(names.length)}`,
)
for (const services of values.sizes.split(',')) {
  for (const flavour of values.flavours.split(',')) {
    const rounds = []
    for (let run = 0; run < Number(values.runs); run++) {
      // In turns, so that a machine that is busy for a while is unfair to both. Once over the limit is over it each time.
      const tooSlow = rounds.some(({ peer }) => !peer)
      rounds.push({
        kpng: measure('kpng', flavour, services),
        peer: tooSlow ? undefined : measure('kube-proxy', flavour, services),
      })
    }
    results.push(...rounds.flatMap(({ kpng, peer }) => [kpng, peer].filter(Boolean)))
    const row = (who, cells) =>
      console.log(`| ${services} × ${values.endpoints} | ${flavour} | ${who} | ${cells.join(' | ')} |`)
    for (const [who, title] of [
      ['kpng', 'kpng'],
      ['peer', 'kube-proxy'],
    ]) {
      const measured = rounds.flatMap((round) => round[who] ?? [])
      row(
        title,
        names.map((name) =>
          measured.length === 0 ? `> ${values.limit} s in all` : Math.round(median(measured.map((one) => one[name]))),
        ),
      )
    }
    const both = rounds.filter(({ kpng, peer }) => kpng && peer)
    if (both.length > 0)
      row(
        'kpng / kube-proxy',
        names.map((name) => spread(both.map(({ kpng, peer }) => kpng[name] / peer[name]))),
      )
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2))
