// What is inside a single file or a bundle, as a CycloneDX document: the packages whose files were bundled, koffi's library, and Node.
// `npm sbom` would list what is installed, which is more. There is no time in it: the same sources give the same bytes.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageFoldersOf } from './licenses.js'

/**
 * @param {object} shipped
 * @param {readonly string[]} shipped.inputs the files that were bundled, relative to `root`
 * @param {{ name: string, version: string, license: string, integrity: string, cpe?: string }[]} shipped.binaries npm packages of which a binary is inside
 * @param {string} root
 */
export function sbomOf({ inputs, binaries }, root) {
  const read = (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const locked = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const bundled = packageFoldersOf(inputs).map((folder) => ({ ...read(folder), integrity: locked[folder]?.integrity }))
  const { version, license } = read('cli')
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { ...component({ name: 'kpng', version, license }), type: 'application' } },
    components: [...bundled, ...binaries].map(component),
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

function component({ name, version, license, integrity, cpe }) {
  // In a package URL the @ of a scope is written %40.
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(cpe ? { cpe } : {}),
    ...(license ? { licenses: [{ expression: license }] } : {}),
    ...(integrity ? { hashes: [hashOf(integrity)] } : {}),
  }
}

/** That of the archive that npm downloaded: `sha512-<base64>`. */
function hashOf(integrity) {
  const [algorithm, digest] = integrity.split('-')
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }
}
