import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** Compiles an example as `npm run example` does, into its dist/ folder. Returns the path of the program. */
export async function compile(name: string): Promise<string> {
  const path = (file: string) => fileURLToPath(new URL(`../${name}/${file}`, import.meta.url))
  const outfile = path(`dist/${name}.js`)
  await build({
    entryPoints: [path(`${name}.ts`)],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  })
  return outfile
}
