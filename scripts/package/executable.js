// Puts a bundle and koffi's library into a copy of Node (https://nodejs.org/api/single-executable-applications.html).
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { withoutSignature } from './authenticode.js'

const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/** Writes `output`. `node` are the bytes of Node for the target, `hostNode` a program of the same version that runs here. */
export async function writeExecutable({ bundle, koffi, node, hostNode, output }) {
  const folder = mkdtempSync(join(dirname(output), '.making-'))
  try {
    const blob = seaBlob({ bundle, koffi, hostNode, folder })
    const program = join(folder, 'program')
    writeFileSync(program, output.endsWith('.exe') ? withoutSignature(node) : node)
    await inject(program, blob)
    chmodSync(program, 0o755)
    renameSync(program, output)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function seaBlob({ bundle, koffi, hostNode, folder }) {
  writeFileSync(join(folder, 'kpng.cjs'), bundle)
  if (koffi) writeFileSync(join(folder, 'koffi.node'), koffi)
  // The paths are kept in the blob: relative ones, or it would differ from folder to folder. A code cache or a snapshot
  // would only fit the platform that made it.
  const config = {
    main: 'kpng.cjs',
    output: 'kpng.blob',
    disableExperimentalSEAWarning: true,
    useSnapshot: false,
    useCodeCache: false,
    assets: koffi ? { 'koffi.node': 'koffi.node' } : {},
  }
  writeFileSync(join(folder, 'sea.json'), JSON.stringify(config))
  const made = spawnSync(hostNode, ['--experimental-sea-config', 'sea.json'], { cwd: folder, encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`Node could not make the blob: ${made.error?.message ?? made.stderr}`)
  return readFileSync(join(folder, 'kpng.blob'))
}

async function inject(program, blob) {
  // postject warns of the notes in Node's own ELF sections, which it leaves as they are.
  const { warn } = console
  console.warn = (text, ...rest) => (`${text}`.includes("Can't find string offset") ? undefined : warn(text, ...rest))
  try {
    await postject().inject(program, 'NODE_SEA_BLOB', blob, { sentinelFuse: fuse })
  } finally {
    console.warn = warn
  }
}

/** Found in node_modules, or in a folder that NODE_PATH names. */
export function postject() {
  try {
    return createRequire(import.meta.url)('postject')
  } catch (error) {
    throw new Error('The npm package postject is missing. Run npm install, or name its folder in NODE_PATH.', {
      cause: error,
    })
  }
}
