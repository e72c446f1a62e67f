#!/usr/bin/env node
// Starts kpng: the bundle beside this file if there is one, as in the npm package and the container image, else the compiled
// sources, as in a checkout. CommonJS, because Node starts it sooner than a module.
//
// V8's code cache saves the compilation of the bundle. It is a file beside the bundle, made after a run by the same Node, and so only
// there if the folder can be written to. V8 rejects the cache of another version, or of one with other flags, but of the source it
// compares only the length. So the name of the file holds the digest of the bundle.
const { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs')
const { basename, dirname, join } = require('node:path')
const { Script } = require('node:vm')

const bundle = join(__dirname, 'kpng-bundle.cjs')

/** A command that runs on compiles more of the bundle than a question. A small cache is quicker to read for the latter. */
const kind = process.argv.some((argument) => argument.startsWith('to-')) ? 'agent' : 'command'

/** `always`: what this run compiles is added to the cache, as when a bundle is made. `never`: no cache is written. */
const mode = process.env.KPNG_CODE_CACHE

/** V8 forgets the code of functions that are not called for a while, so the cache of an agent is made soon after its start. */
const agentCacheAfterMs = 10_000

/** Undefined if there is no such file. */
function contentOf(file) {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

/** @param bytes ASCII only. As Latin-1 they are not decoded, and take one byte per character. */
function runBundle(bytes, digest) {
  const file = join(__dirname, `kpng-bundle.${digest}-${process.version}-${process.arch}.${kind}.cache`)
  const cachedData = contentOf(file)
  const script = new Script(bytes.latin1Slice(), { filename: bundle, ...(cachedData && { cachedData }) })
  script.runInThisContext()(require, bundle, dirname(bundle))
  const isFresh = cachedData && !script.cachedDataRejected
  if (mode === 'always' || (mode !== 'never' && !isFresh)) writeOnce(() => saveCache(file, script))
}

/** When enough has run: after some time, or at the end if that comes first. */
function writeOnce(write) {
  const once = () => {
    clearTimeout(timer)
    process.off('exit', once)
    write()
  }
  const timer = setTimeout(once, agentCacheAfterMs).unref()
  process.on('exit', once)
}

/** Where the folder cannot be written to, kpng starts without a cache. */
function saveCache(file, script) {
  const temporary = `${file}.${process.pid}`
  try {
    const descriptor = openSync(temporary, 'wx', 0o644)
    try {
      writeFileSync(descriptor, script.createCachedData())
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(temporary, file)
  } catch {
    rmSync(temporary, { force: true })
  }
}

// A start runs much code a few thousand times. The V8 of Node 20 would optimize it after a few hundred calls, in vain: at 1,000 Services that is
// half of the CPU time. With eight times the budget, what stays busy is still optimized. Later versions of V8 have a cheaper
// compiler for this, and not this flag. It is set before the bundle is compiled: the code cache is only valid with the same flags.
if (kind === 'agent' && process.version.startsWith('v20.')) {
  require('node:v8').setFlagsFromString('--interrupt-budget=540000')
}

const bytes = contentOf(bundle)
if (bytes) {
  // Its first line says what it is. So the version is known before the bundle is compiled.
  const [, digest, version] = /^\/\/ (\S+) (\S+)\n/.exec(bytes.latin1Slice(0, 100))
  const asksVersion = process.argv.length === 3 && ['version', '--version'].includes(process.argv[2])
  if (asksVersion && /^kpng(\.c?js)?$/.test(basename(process.argv[1]))) console.log(version)
  else runBundle(bytes, digest)
} else {
  import('../dist/main.js').then(async ({ main }) => {
    process.exitCode = await main(process.argv.slice(2))
  })
}
