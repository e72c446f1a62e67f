// A short version of every benchmark, one after the other, in under five minutes: npm run bench [-- --json FILE] [--compare FILE] [--only nft,core].
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fail, parsedArgs } from './core/arguments.js'
import { short } from './short.js'

const { values, numbers } = parsedArgs({
  json: { type: 'string', default: 'bench-result.json' },
  compare: { type: 'string' },
  only: { type: 'string' },
  'limit-seconds': { type: 'string', default: '60' },
})
const limitMs = numbers['limit-seconds'] * 1000

/** What a benchmark printed, or why there are no figures. */
function run({ program, args }) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [new URL(program, import.meta.url).pathname, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let [printed, complaint] = ['', '']
    child.stdout.on('data', (chunk) => {
      printed += chunk
    })
    child.stderr.on('data', (chunk) => {
      complaint += chunk
    })
    // The group: benchmarks have processes of their own.
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), limitMs)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (signal) resolve({ why: `it did not end within ${limitMs / 1000} s (--limit-seconds)` })
      else if (code !== 0) resolve({ why: lastLine(complaint) || `exit code ${code}` })
      else resolve({ printed })
    })
  })
}

const lastLine = (text) => /^\w*Error: .*$/m.exec(text)?.[0] ?? text.trim().split('\n').at(-1)

/** Figures by name, in the units that the names say. Lower is better. */
async function measure(benchmark) {
  const why = benchmark.whyNot?.()
  if (why) return { why }
  const { printed, why: failed } = await run(benchmark)
  if (failed) return { why: failed }
  try {
    return { figures: benchmark.figures(printed) }
  } catch (error) {
    return { why: `its output cannot be read: ${error.message}` }
  }
}

function compare(before, after) {
  const rows = []
  for (const [name, { figures = {} }] of Object.entries(after.benchmarks)) {
    for (const [figure, value] of Object.entries(figures)) {
      const known = before.benchmarks[name]?.figures?.[figure]
      if (known === undefined) rows.push({ benchmark: name, figure, now: value })
      else rows.push({ benchmark: name, figure, before: known, now: value, ratio: Number((value / known).toFixed(2)) })
    }
  }
  return rows
}

/** A saved run, read before anything is measured. */
function savedRun(file) {
  try {
    const saved = JSON.parse(readFileSync(file, 'utf8'))
    if (saved?.benchmarks) return saved
  } catch (error) {
    fail(`The file ${file} (--compare) cannot be read: ${error.message}.`)
  }
  return fail(`The file ${file} (--compare) is not one that npm run bench wrote.`)
}

const before = values.compare && savedRun(values.compare)
const only = values.only?.split(',')
const unknown = only?.filter((name) => !short[name]) ?? []
if (unknown.length > 0)
  fail(`There is no benchmark ${unknown.join(', ')}. There are: ${Object.keys(short).join(', ')}.`)
try {
  // Said now and not after five minutes.
  writeFileSync(values.json, '', { flag: 'a' })
} catch (error) {
  fail(`The file ${values.json} (--json) cannot be written: ${error.message}.`)
}
const began = performance.now()
const result = {
  at: new Date().toISOString(),
  node: process.version,
  cpus: cpus().length,
  load: loadavg()[0],
  benchmarks: {},
}
for (const [name, benchmark] of Object.entries(short)) {
  if (only && !only.includes(name)) continue
  const since = performance.now()
  const measured = await measure(benchmark)
  const took = `${Math.round((performance.now() - since) / 1000)} s`
  result.benchmarks[name] = measured
  if (measured.why) console.log(`${name} (${took}): SKIPPED. ${measured.why}`)
  else
    console.log(
      `${name} (${took}): ${Object.entries(measured.figures)
        .map(([figure, value]) => `${figure} ${value}`)
        .join(', ')}`,
    )
}
writeFileSync(values.json, `${JSON.stringify(result, undefined, 2)}\n`)
const seconds = Math.round((performance.now() - began) / 1000)
console.log(
  `${seconds} s. The figures are in ${values.json}. Load average before: ${result.load.toFixed(1)} on ${result.cpus} CPUs.`,
)
if (before) {
  console.log(
    `Beside ${values.compare} of ${before.at} (load ${before.load.toFixed(1)}): ratios above 1 are slower or larger now.`,
  )
  console.table(compare(before, result))
}
