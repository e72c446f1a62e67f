// An esbuild plugin. A single file has no files beside it, so what our sources read from beside themselves, as
// `readFileSync(new URL('../package.json', import.meta.url), 'utf8')`, is put in at build time.
import { readFile } from 'node:fs/promises'
import { dirname, relative, resolve, sep } from 'node:path'

const read = /readFileSync\(\s*new URL\(\s*'([^']+)'\s*,\s*import\.meta\.url\s*\)\s*,\s*'utf8'\s*,?\s*\)/g

/**
 * Sources that may look beside themselves for what is not there. Labs are told how to start their agents, and look for the agents'
 * program only if they are not; whether tests can use koffi is asked in tests only.
 */
export const mayLookInVain = ['linux/lab/agent.ts', 'linux/lab/requirements.ts']

/** Where the single file is. */
const ownUrl = "require('node:url').pathToFileURL(__filename).href"

/** `text` with the files it reads put in, or an error that names what would be missing at run time. */
export async function bakeFiles(text, path, readText = (file) => readFile(file, 'utf8'), inVain = false) {
  const files = new Map()
  for (const [, name] of text.matchAll(read)) files.set(name, await readText(resolve(dirname(path), name)))
  const baked = text.replace(read, (_, name) => JSON.stringify(files.get(name)))
  if (inVain) return baked.replaceAll('import.meta.url', ownUrl)
  if (/\bimport\.meta\b/.test(baked)) {
    throw new Error(
      `${path} uses import.meta in a way that has no meaning in a single file. ` +
        "Read files with readFileSync(new URL('<path>', import.meta.url), 'utf8'), which is replaced by their text, or, " +
        'when it can do without them, name it in scripts/package/baked-files.js.',
    )
  }
  return baked
}

export const bakedFiles = (root) => ({
  name: 'baked-files',
  setup(build) {
    build.onLoad({ filter: /\.(ts|[cm]?js)$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      if (!text.includes('import.meta')) return undefined
      const inVain = mayLookInVain.includes(relative(root, path).split(sep).join('/'))
      const contents = await bakeFiles(text, path, undefined, inVain)
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' }
    })
  },
})
