// What a packet pays: the first of a connection, and each later one; with no rules, with kpng's, and with chains for each service
// and endpoint. Needs root, nft, iproute2, and a build (`npm run build`).
//   node bench/nft/packets.js [--services 1000] [--endpoints 10] [--runs 3]
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    services: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10' },
    runs: { type: 'string', default: '3' },
  },
})

const script = fileURLToPath(new URL('packets-measure.js', import.meta.url))
const rulesets = ['none', 'kpng', 'chains']

function measure(ruleset) {
  const args = ['--net', process.execPath, script, ruleset, values.services, values.endpoints]
  const { status, stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The measurement of "${ruleset}" failed:\n${stderr}`)
  return JSON.parse(stdout)
}

// In turns, so that a machine that is busy for a while is unfair to all of them.
const results = new Map(rulesets.map((ruleset) => [ruleset, []]))
for (let run = 0; run < Number(values.runs); run++)
  for (const ruleset of rulesets) results.get(ruleset).push(measure(ruleset))

const best = (ruleset, field) => Math.min(...results.get(ruleset).map((result) => result[field])) / 1000
console.log('| ruleset | first packet µs | later packets µs |\n|---|---|---|')
for (const ruleset of rulesets) {
  console.log(`| ${ruleset} | ${best(ruleset, 'firstNs').toFixed(2)} | ${best(ruleset, 'laterNs').toFixed(2)} |`)
}
const ratio = (field) => (best('kpng', field) / best('chains', field)).toFixed(2)
console.log(`kpng against chains: first packet ${ratio('firstNs')} ×, later packets ${ratio('laterNs')} ×`)
