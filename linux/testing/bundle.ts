import { spawnSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build } from 'esbuild'

// Programs for tests that need a process of their own. Only for tests of this checkout: esbuild is not part of a package.

const options: BuildOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  logLevel: 'error',
  conditions: ['kpng-source'],
  external: ['koffi', 'esbuild'],
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)" },
}

/** Where koffi and esbuild are found from. */
const folder = fileURLToPath(new URL('../../node_modules/.cache/kpng-test/', import.meta.url))

let count = 0

/** A path for a program that can load koffi. Remove the file when the test is over. */
export function programPath(name: string): string {
  mkdirSync(folder, { recursive: true })
  return `${folder}${name}-${process.pid}-${++count}.mjs`
}

/** Puts a TypeScript file and everything it imports into one file that Node can run without our packages. */
export async function bundle(entry: URL, outfile: string): Promise<void> {
  await build({ ...options, entryPoints: [fileURLToPath(entry)], outfile })
}

let agent: Promise<string> | undefined

/** The command of the agent as it is in the sources now, for tests: a built one may be old. */
export async function bundledAgent(): Promise<readonly string[]> {
  agent ??= (async () => {
    const path = programPath('agent')
    await bundle(new URL('../lab/agent/main.ts', import.meta.url), path)
    // One file for all runs, replaced as a whole: another run may be starting agents from it.
    renameSync(path, `${folder}agent.mjs`)
    return `${folder}agent.mjs`
  })()
  return [process.execPath, await agent]
}

/** Puts TypeScript code that stands beside a file, and all that it imports, into one file. */
export async function bundleCode(code: string, beside: URL, outfile: string): Promise<void> {
  const resolveDir = fileURLToPath(new URL('.', beside))
  await build({ ...options, stdin: { contents: code, resolveDir, loader: 'ts' }, outfile })
}

/** Runs TypeScript code in a process of its own that has opened files until no descriptor was left. Returns what it printed. */
export async function runWithoutDescriptors(code: string, beside: URL): Promise<{ status: number; printed: string }> {
  const outfile = programPath('without-descriptors')
  try {
    await bundleCode(`import { openSync } from 'node:fs'\n${code}`, beside, outfile)
    const limited = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath, outfile]
    const { status, stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8', timeout: 20_000 })
    return { status: status ?? -1, printed: stdout + stderr }
  } finally {
    rmSync(outfile, { force: true })
  }
}

/** Code for `runWithoutDescriptors`: from here on nothing can be opened. */
export const useUpDescriptors = `
  let opened = true
  while (opened) {
    try {
      openSync('/dev/null', 'r')
    } catch (error) {
      opened = false
    }
  }`
