// npm run package [-- --target linux-x64,win-x64] [--out release]: kpng as one file for each platform, Node included.
// npm run package -- --bundle <folder>: only the bundle, for a Node that is there already; the container image is made of it.
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle } from './package/bundle.js'
import { postject, writeExecutable } from './package/executable.js'
import { koffiInput, licensesOf } from './package/licenses.js'
import { fileOf } from './package/npm-files.js'
import { hostTarget, nodeVersion, targets } from './package/targets.js'
import { install, root } from './steps.js'

const cache = join(root, 'node_modules', '.cache', 'kpng-package')
const lock = () => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages

function options() {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', default: Object.keys(targets).join(',') },
      out: { type: 'string', default: join(root, 'release') },
      bundle: { type: 'string' },
    },
  })
  const names = values.target.split(',')
  const unknown = names.find((name) => !(name in targets))
  if (unknown !== undefined) {
    throw new Error(`There is no target "${unknown}". Give some of ${Object.keys(targets).join(', ')}.`)
  }
  return { names, out: resolve(values.out), bundleFolder: values.bundle && resolve(values.bundle) }
}

/** koffi's library for a target, or undefined where koffi is not part of the checkout. */
function koffiFor(target) {
  const { name, file } = targets[target].koffi
  const locked = lock()[`node_modules/${name}`]
  return locked && fileOf({ name, file, version: locked.version, integrity: locked.integrity }, cache)
}

const nodeFor = (target) => fileOf({ ...targets[target].node, version: nodeVersion }, cache)

/** A Node of the pinned version that runs here: the blob's format is its own. */
function hostNode() {
  if (process.version === `v${nodeVersion}`) return process.execPath
  const host = hostTarget()
  if (!host) throw new Error(`Run this with Node ${nodeVersion}: there is no such Node to download for this platform.`)
  const program = join(cache, `node-${nodeVersion}-${host}${targets[host].suffix}`)
  if (!existsSync(program)) {
    writeFileSync(program, nodeFor(host))
    chmodSync(program, 0o755)
  }
  return program
}

async function writeBundle(folder) {
  const { text, inputs } = await bundle(root)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'kpng.cjs'), text)
  writeFileSync(join(folder, 'LICENSES.txt'), licensesOf([...inputs, ...koffiInput(root)], root))
  const host = hostTarget()
  const koffi = host && koffiFor(host)
  if (koffi) writeFileSync(join(folder, 'koffi.node'), koffi)
}

async function writeExecutables(names, out) {
  postject()
  const { text, inputs } = await bundle(root)
  mkdirSync(out, { recursive: true })
  const sums = []
  for (const target of names) {
    const name = `kpng-${target}${targets[target].suffix}`
    const output = join(out, name)
    rmSync(output, { force: true })
    const node = nodeFor(target)
    await writeExecutable({ bundle: text, koffi: koffiFor(target), node, hostNode: hostNode(), output })
    const bytes = readFileSync(output)
    sums.push(`${createHash('sha256').update(bytes).digest('hex')}  ${name}`)
    console.log(`${sums.at(-1)}  ${(bytes.length / 1e6).toFixed(1)} MB`)
  }
  writeFileSync(join(out, 'SHA256SUMS'), `${sums.join('\n')}\n`)
  writeFileSync(join(out, 'LICENSES.txt'), licensesOf([...inputs, ...koffiInput(root)], root))
}

try {
  const { names, out, bundleFolder } = options()
  install()
  if (bundleFolder) await writeBundle(bundleFolder)
  else await writeExecutables(names, out)
} catch (error) {
  console.error(`npm run package: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
