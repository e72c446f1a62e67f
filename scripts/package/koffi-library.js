// Stands in for the koffi package in a bundle. The native library is an asset of the executable; in the container image it is a file
// beside the bundle; in the npm package it comes from the koffi package that @kpng/linux depends on.
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sea from 'node:sea'

const prefix = 'kpng-koffi-'

function loadLibrary() {
  const beside = join(__dirname, 'koffi.node')
  if (!sea.isSea() && existsSync(beside)) return open(beside)
  if (!sea.isSea()) return createRequire(createRequire(__filename).resolve('@kpng/linux'))('koffi')
  if (process.platform === 'win32') sweep()
  // A folder that only this user can write to: nobody may put a library of their own in its place.
  const folder = mkdtempSync(join(tmpdir(), prefix))
  try {
    const file = join(folder, 'koffi.node')
    writeFileSync(file, Buffer.from(sea.getRawAsset('koffi.node')), { mode: 0o500 })
    return open(file)
  } finally {
    // Once it is mapped Linux needs the name no more. Windows keeps it until the process ends: the next one sweeps.
    if (process.platform !== 'win32') rmSync(folder, { recursive: true, force: true })
  }
}

function open(file) {
  const library = { exports: {} }
  process.dlopen(library, file)
  return library.exports
}

/** Takes away what earlier processes left. What a running one still uses cannot be deleted, and stays. */
function sweep() {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(prefix))) {
    try {
      rmSync(join(tmpdir(), name), { recursive: true })
    } catch {}
  }
}

export default loadLibrary()
