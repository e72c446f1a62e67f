// node dashboard/testing/run.js <shoot | measure | mock> [arguments]: compiles one of the programs in this folder and runs it.
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const folder = dirname(fileURLToPath(import.meta.url))
const [name = ''] = process.argv.slice(2)
if (!['shoot', 'measure', 'mock'].includes(name)) {
  console.error('Which program? Say node dashboard/testing/run.js shoot, measure or mock.')
  process.exit(2)
}
const outfile = join(folder, '..', '..', 'node_modules', '.cache', 'kpng-dashboard', `${name}.mjs`)
await build({
  entryPoints: [join(folder, `${name}.ts`)],
  outfile,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  logLevel: 'warning',
})
process.argv.splice(1, 2, outfile)
await import(pathToFileURL(outfile).href)
