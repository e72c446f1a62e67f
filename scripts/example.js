// npm run example -- <name> [flags]: compiles one example and runs it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { bin, build, install, root, run } from './steps.js'

const [name, ...args] = process.argv.slice(2)
const source = join(root, 'examples', name ?? '', `${name}.ts`)
if (!name || !existsSync(source)) {
  console.error('Which example? Say npm run example -- printer, own-proxy, small-nft or nginx-upstreams.')
  process.exit(2)
}
install()
build()
const compile = ['--bundle', '--packages=external', '--platform=node', '--format=esm', '--log-level=warning']
const output = join(root, 'examples', name, 'dist')
mkdirSync(output, { recursive: true })
run(bin('esbuild'), [source, `--outfile=${join(output, `${name}.js`)}`, ...compile])
process.exit(spawnSync(process.execPath, [join(output, `${name}.js`), ...args], { stdio: 'inherit' }).status ?? 1)
