// Start, adopt and change at several sizes. With --base, another built checkout of kpng in the same run, in turns, and the ratios.
// Needs root, nft, and a build (`npm run build`).
//   node bench/nft/index.js [--sizes 100,1000,5000,10000] [--endpoints 10] [--runs 3] [--base <checkout>] [--json]
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '100,1000,5000,10000' },
    endpoints: { type: 'string', default: '10' },
    runs: { type: 'string', default: '3' },
    base: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

const script = fileURLToPath(new URL('measure.js', import.meta.url))
const here = fileURLToPath(new URL('../..', import.meta.url))
/** The V8 flag that the command sets for agents if it runs on Node 20. */
const [, agentFlags] = /setFlagsFromString\('([^']+)'\)/.exec(readFileSync(join(here, 'cli/bin/start.js'), 'utf8'))
const checkouts = {
  this: [here],
  ...(process.version.startsWith('v20.') && { 'this, V8 as the command sets it': [here, agentFlags] }),
  ...(values.base && { base: [resolve(values.base)] }),
}
const changes = 600

/** Runs a measurement where no rule of the machine's own is touched. */
function measure([checkout, ...flags], services) {
  const node = ['--net', process.execPath, ...flags]
  const args = [...node, script, checkout, String(services), values.endpoints, String(changes)]
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The measurement of ${services} services failed:\n${stderr}`)
  return JSON.parse(stdout)
}

const fields = {
  setupMs: 'setup ms',
  loadMs: 'load ms',
  loadCpuMs: 'load CPU ms',
  adoptMs: 'adopt ms',
  p50Ms: 'change p50 ms',
  p99Ms: 'p99 ms',
  cpuMsPerChange: 'CPU ms/change',
  residentMegabytes: 'RSS MB',
}
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]
const short = (value) => value.toFixed(value < 10 ? 2 : 0)

const results = []
for (const services of values.sizes.split(',').map(Number)) {
  // In turns, so that a machine that is busy for a while is unfair to both.
  for (let run = 0; run < Number(values.runs); run++)
    for (const [name, checkout] of Object.entries(checkouts)) results.push({ name, ...measure(checkout, services) })
}

if (values.json) console.log(JSON.stringify(results, null, 2))
else {
  console.log(
    `| services | checkout | ${Object.values(fields).join(' | ')} |\n|---|---|${'---|'.repeat(Object.keys(fields).length)}`,
  )
  for (const services of values.sizes.split(',').map(Number)) {
    const of = (name, field) =>
      median(results.filter((r) => r.services === services && r.name === name).map((r) => r[field]))
    const row = (name, cells) => console.log(`| ${services} × ${values.endpoints} | ${name} | ${cells.join(' | ')} |`)
    for (const name of Object.keys(checkouts))
      row(
        name,
        Object.keys(fields).map((field) => short(of(name, field))),
      )
    for (const name of Object.keys(checkouts).filter((each) => values.base && each !== 'base'))
      row(
        `${name} / base`,
        Object.keys(fields).map((field) => `${(of(name, field) / of('base', field)).toFixed(2)} ×`),
      )
  }
}
