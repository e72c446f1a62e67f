// node conformance/testing/mutate.js [number ...]: whether the kit sees planted faults. For each of them, a copy of the built checkout gets the fault, and the kit
// runs the cases that should see it against that copy. Needs root and a build; takes some minutes.
//
// planted-faults.json has them: a text in a compiled file, what stands there instead, and the cases that are run. Each text must be there exactly once, so that
// a fault which no longer applies is noticed.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { proxyNamed, runConformance } from '@kpng/conformance'

const plantedFaults = JSON.parse(readFileSync(new URL('planted-faults.json', import.meta.url), 'utf8'))
const root = fileURLToPath(new URL('../../', import.meta.url))
const copy = mkdtempSync(join(tmpdir(), 'kpng-mutate-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())

/** The packages, without sources and tests. Links between packages are relative, so they lead to the copies. */
function copyCheckout() {
  const unwanted = new Set([
    'node_modules',
    '.git',
    'docs',
    'bench',
    'deploy',
    'examples',
    'scripts',
    'testing',
    'results',
  ])
  cpSync(root, copy, {
    recursive: true,
    filter: (path) => !unwanted.has(basename(path)) && !/\.(ts|map|md)$/.test(path),
  })
  const modules = join(copy, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (['@kpng', 'kpng', '.bin'].includes(name)) continue
    symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  for (const name of ['@kpng', 'kpng']) {
    cpSync(join(root, 'node_modules', name), join(modules, name), { recursive: true, verbatimSymlinks: true })
  }
}

const kpng = [process.execPath, join(copy, 'cli', 'bin', 'kpng.js')]

async function wrongCells(only) {
  const { results } = await runConformance({
    proxy: proxyNamed('nft', kpng, 'manifests'),
    ...{
      feed: 'manifests',
      backend: 'nft',
      only,
      families: ['IPv4'],
      settleMs: 300,
      programTimeoutMs: 30_000,
      signal: interrupted.signal,
      log() {},
    },
  })
  return results.filter(({ status }) => status === 'wrong').map(({ id }) => id)
}

async function run({ name, file, find, put, only }, number) {
  const path = join(copy, file)
  const text = readFileSync(path, 'utf8')
  const line = (verdict, detail) => console.log(`| ${number} | ${name} | ${verdict} | ${detail} |`)
  if (text.split(find).length !== 2) {
    line('not applied', `the text is not there once in ${file}`)
    return false
  }
  writeFileSync(
    path,
    text.replace(find, () => put),
  )
  try {
    const wrong = await wrongCells(only)
    line(wrong.length > 0 ? 'caught' : '**not caught**', wrong.slice(0, 3).join(', '))
    return wrong.length > 0
  } catch (error) {
    if (interrupted.signal.aborted) throw error
    // A proxy that does not start is seen too.
    line('caught', String(error.message).split('\n')[0].slice(0, 100))
    return true
  } finally {
    writeFileSync(path, text)
  }
}

const numbers = process.argv.slice(2).map(Number)
const unknown = process.argv.slice(2).filter((word) => plantedFaults[Number(word) - 1] === undefined)
if (unknown.length > 0) {
  console.error(
    `There is no fault ${unknown.join(', ')}. Give numbers from 1 to ${plantedFaults.length}, or none for all of them.`,
  )
  process.exit(2)
}
copyCheckout()
const wanted = [...plantedFaults.entries()].filter(([index]) => numbers.length === 0 || numbers.includes(index + 1))
if (numbers.length === 0) {
  const wrong = await wrongCells([...new Set(plantedFaults.flatMap(({ only }) => only))])
  if (wrong.length > 0) throw new Error(`Without any fault these cells are wrong: ${wrong.join(', ')}.`)
}
console.log('| fault | what is wrong | verdict | cells |\n|---|---|---|---|')
let caught = 0
for (const [index, fault] of wanted) if (await run(fault, index + 1)) caught++
console.log(`\n${caught} of ${wanted.length} caught.`)
process.exitCode = caught === wanted.length ? 0 : 1
