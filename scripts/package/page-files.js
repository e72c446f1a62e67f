// An esbuild plugin. A single file has no folder with the live page beside it, so the page is built, and its files are put in, in place of
// cli/agent/page-files.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { buildDashboard } from '../../dashboard/build.js'

const replaced = 'cli/agent/page-files.ts'

/** The module that stands in: it gives the files that are in the folder now. */
export function pageFilesModule(folder) {
  const files = readdirSync(folder)
    .sort()
    .filter((name) => /\.(html|js|css|svg|png|ico|woff2)$/.test(name))
    .map((name) => [name, readFileSync(join(folder, name)).toString('base64')])
  if (!files.some(([name]) => name === 'index.html')) throw new Error(`${folder} has no index.html.`)
  return `const files = ${JSON.stringify(files)}
export const pageFiles = async () => new Map(files.map(([name, text]) => [name, Buffer.from(text, 'base64')]))
`
}

export const pageFiles = (root) => ({
  name: 'page-files',
  setup(build) {
    build.onLoad({ filter: /page-files\.ts$/ }, async ({ path }) => {
      if (relative(root, path).split(sep).join('/') !== replaced) return undefined
      await buildDashboard()
      return { contents: pageFilesModule(join(root, 'dashboard', 'dist')), loader: 'js' }
    })
  },
})
