// npm run package [-- --target linux-x64,win-x64] [--out release] [--cache <folder>]: kpng as one file for each platform, Node
// included.
// npm run package -- --bundle <folder>: only the bundle, for a Node that is there already; the container image is made of it.
// npm run package -- --bundle-only <folder>: only the script of the bundle. `npm pack` and `npm publish` do this for the command.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle, forNode } from './package/bundle.js'
import { makeCodeCache } from './package/code-cache.js'
import { postject, writeExecutable } from './package/executable.js'
import { hiddenInputs, licensesOf } from './package/licenses.js'
import { fileOf } from './package/npm-files.js'
import { sbomOf } from './package/sbom.js'
import { hostTarget, nodeVersion, targets } from './package/targets.js'
import { root } from './steps.js'

const lock = () => JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages

function options() {
  const { values } = parseArgs({
    options: {
      target: { type: 'string', default: Object.keys(targets).join(',') },
      out: { type: 'string', default: join(root, 'release') },
      cache: { type: 'string', default: join(root, 'node_modules', '.cache', 'kpng-package') },
      bundle: { type: 'string' },
      'bundle-only': { type: 'string' },
    },
  })
  const names = values.target.split(',')
  const unknown = names.find((name) => !(name in targets))
  if (unknown !== undefined) {
    throw new Error(`There is no target "${unknown}". Give some of ${Object.keys(targets).join(', ')}.`)
  }
  const { out, cache, bundle: bundleFolder, 'bundle-only': scriptFolder } = values
  return { names, out: resolve(out), cache: resolve(cache), bundleFolder, scriptFolder }
}

/** koffi's library for a target, or undefined where koffi is not part of the checkout. */
function koffiFor(target, cache) {
  const { name, file } = targets[target].koffi
  const packages = lock()
  if (!packages['node_modules/koffi']) return undefined
  const locked = packages[`node_modules/${name}`]
  const installed = join(root, 'node_modules', name, file.replace(/^package\//, ''))
  if (existsSync(installed)) return readFileSync(installed)
  if (!locked) throw new Error(`package-lock.json lacks ${name}. Write it anew with npm install --package-lock-only.`)
  return fileOf({ name, file, version: locked.version, integrity: locked.integrity }, cache)
}

/** The npm packages of which a target has a binary inside. koffi's own package is among the bundled files. */
function binariesOf(target) {
  const { name } = targets[target].koffi
  const { version, integrity } = lock()[`node_modules/${name}`] ?? {}
  return version ? [{ name, version, license: 'MIT', integrity }] : []
}

const nodeOf = (target) => ({
  ...targets[target].node,
  version: nodeVersion,
  license: 'MIT',
  // By this name, scanners know Node's own vulnerabilities.
  cpe: `cpe:2.3:a:nodejs:node.js:${nodeVersion}:*:*:*:*:*:*:*`,
})

const nodeFor = (target, cache) => fileOf({ ...targets[target].node, version: nodeVersion }, cache)

/** A Node of the pinned version that runs here: the blob's format is its own. */
function hostNode(cache) {
  if (process.version === `v${nodeVersion}`) return process.execPath
  const host = hostTarget()
  if (!host) throw new Error(`Run this with Node ${nodeVersion}: there is no such Node to download for this platform.`)
  const program = join(cache, `node-${nodeVersion}-${host}${targets[host].suffix}`)
  if (!existsSync(program)) {
    writeFileSync(program, nodeFor(host, cache))
    chmodSync(program, 0o755)
  }
  return program
}

/** Writes the script that cli/bin/start.js runs, in one step: a kpng that starts meanwhile sees all of it or nothing. */
async function writeScript(folder) {
  const { text, inputs } = await bundle(root)
  const file = join(folder, 'kpng-bundle.cjs')
  const { version } = JSON.parse(readFileSync(join(root, 'cli', 'package.json'), 'utf8'))
  writeFileSync(`${file}.new`, forNode(text, version))
  renameSync(`${file}.new`, file)
  return inputs
}

async function writeBundle(folder, cache) {
  mkdirSync(folder, { recursive: true })
  const inputs = await writeScript(folder)
  copyFileSync(join(root, 'cli', 'bin', 'start.js'), join(folder, 'kpng.cjs'))
  chmodSync(join(folder, 'kpng.cjs'), 0o755)
  writeFileSync(join(folder, 'LICENSES.txt'), licensesOf([...inputs, ...hiddenInputs(root)], root))
  const host = hostTarget()
  const koffi = host && koffiFor(host, cache)
  // Not Node: the bundle is run by one that is there already.
  const shipped = { inputs: [...inputs, ...hiddenInputs(root)], binaries: host ? binariesOf(host) : [] }
  writeFileSync(join(folder, 'kpng.cdx.json'), sbomOf(shipped, root))
  if (koffi) writeFileSync(join(folder, 'koffi.node'), koffi)
  await makeCodeCache(folder)
}

async function writeExecutables(names, out, cache) {
  postject()
  const { text, inputs } = await bundle(root)
  mkdirSync(out, { recursive: true })
  const sums = []
  for (const target of names) {
    const name = `kpng-${target}${targets[target].suffix}`
    const output = join(out, name)
    rmSync(output, { force: true })
    await writeExecutable({
      bundle: text,
      koffi: koffiFor(target, cache),
      node: nodeFor(target, cache),
      hostNode: hostNode(cache),
      output,
    })
    const shipped = { inputs: [...inputs, ...hiddenInputs(root)], binaries: [...binariesOf(target), nodeOf(target)] }
    writeFileSync(join(out, `kpng-${target}.cdx.json`), sbomOf(shipped, root))
    const bytes = readFileSync(output)
    sums.push(`${createHash('sha256').update(bytes).digest('hex')}  ${name}`)
    console.log(`${sums.at(-1)}  ${(bytes.length / 1e6).toFixed(1)} MB`)
  }
  writeFileSync(join(out, 'SHA256SUMS'), `${sums.join('\n')}\n`)
  // It is the same on every platform, and not in the package for Windows.
  const nodeLicense = fileOf({ ...nodeOf('linux-x64'), file: 'package/LICENSE' }, cache)
  const licenses = `${licensesOf([...inputs, ...hiddenInputs(root)], root)}\n${'='.repeat(80)}\nNode.js ${nodeVersion}\n\n${nodeLicense}`
  writeFileSync(join(out, 'LICENSES.txt'), licenses)
}

try {
  const { names, out, cache, bundleFolder, scriptFolder } = options()
  if (bundleFolder) await writeBundle(resolve(bundleFolder), cache)
  else if (scriptFolder) await writeScript(resolve(scriptFolder))
  else await writeExecutables(names, out, cache)
} catch (error) {
  console.error(`npm run package: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
