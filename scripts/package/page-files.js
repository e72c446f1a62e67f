// An esbuild plugin. A single file has no folder with the live page beside it, so the files of dashboard/dist are put in at build time, in
// place of cli/agent/page-files.ts. Without that folder, the single file has no live page, and says so.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

const replaced = 'cli/agent/page-files.ts'

/** The module that stands in: it gives the files that are in the folder now. */
export function pageFilesModule(folder) {
  const names = existsSync(join(folder, 'index.html')) ? readdirSync(folder).sort() : []
  const files = names
    .filter((name) => /\.(html|js|css|svg|png|ico|woff2)$/.test(name))
    .map((name) => [name, readFileSync(join(folder, name)).toString('base64')])
  return `const files = ${JSON.stringify(files)}
export const pageFiles = async () =>
  files.length === 0 ? undefined : new Map(files.map(([name, text]) => [name, Buffer.from(text, 'base64')]))
`
}

export const pageFiles = (root) => ({
  name: 'page-files',
  setup(build) {
    build.onLoad({ filter: /page-files\.ts$/ }, ({ path }) =>
      relative(root, path).split(sep).join('/') === replaced
        ? { contents: pageFilesModule(join(root, 'dashboard', 'dist')), loader: 'js' }
        : undefined,
    )
  },
})
