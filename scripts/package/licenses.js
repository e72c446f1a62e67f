// An executable contains npm packages. Their licences must be passed on with it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The licences of the npm packages that the given files are from, as one text. */
export function licensesOf(inputs, root) {
  return packageFoldersOf(inputs)
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
      const texts = readdirSync(join(root, folder))
        .filter((file) => /^(licen[cs]e|notice)/i.test(file))
        .sort()
        .map((file) => readFileSync(join(root, folder, file), 'utf8').trim())
      return [`${'='.repeat(80)}\n${name} ${version} (${license})\n`, ...texts].join('\n\n')
    })
    .join('\n\n')
    .concat('\n')
}

/** The folders of the npm packages that the given files are from: `node_modules/@scope/name`. */
export const packageFoldersOf = (inputs) =>
  [...new Set(inputs.map(packageFolder))].filter((folder) => folder !== undefined).sort()

/** `node_modules/@scope/name` of a file below it, however deep the node_modules folders are nested. */
function packageFolder(file) {
  const parts = file.split('/')
  const at = parts.lastIndexOf('node_modules')
  if (at < 0) return undefined
  return parts.slice(0, at + (parts[at + 1]?.startsWith('@') ? 3 : 2)).join('/')
}

/** Files of packages that are inside without being inputs of the bundle: koffi's library, and what the live page is bundled of. */
export const hiddenInputs = (root) =>
  ['koffi', 'preact', '@preact/signals', '@preact/signals-core']
    .filter((name) => existsSync(join(root, 'node_modules', name)))
    .map((name) => `node_modules/${name}/package.json`)
