import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Manifest, nameOf } from './manifest.js'

// Manifests against the schemas of Kubernetes itself. kubernetes-types has its OpenAPI schemas as TypeScript, and the
// compiler holds an object literal to its type exactly: a field that Kubernetes would drop without a word, one that is
// missing, a number where it wants text.

const require = createRequire(import.meta.url)
const types = dirname(require.resolve('kubernetes-types/package.json'))
const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc')

/** Where the types of a group and version are; undefined when they are not Kubernetes' own. */
export function schemaOf(apiVersion: string): string | undefined {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion]
  const isOwn = group?.endsWith('.k8s.io') || !group?.includes('.')
  const module = `${group?.split('.')[0]}/${version}`
  return isOwn && existsSync(join(types, `${module}.d.ts`)) ? module : undefined
}

const literal = (manifest: Manifest): string =>
  [
    `import type { ${manifest.kind} } from 'kubernetes-types/${schemaOf(manifest.apiVersion)}'`,
    `export const manifest: ${manifest.kind} = ${JSON.stringify(manifest, undefined, 1)}`,
  ].join('\n')

/** What the schemas say against each of these; one list per manifest, in their order. */
export function schemaFaults(manifests: readonly Manifest[]): string[][] {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-schemas-'))
  try {
    manifests.forEach((manifest, index) => {
      writeFileSync(join(folder, `${index}.ts`), literal(manifest))
    })
    const compilerOptions = {
      ...{ strict: true, noEmit: true, types: [], module: 'esnext', moduleResolution: 'bundler' },
      paths: { 'kubernetes-types/*': [`${types}/*`] },
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [compiler, '-p', join(folder, 'tsconfig.json'), '--pretty', 'false'],
      { cwd: folder, encoding: 'utf8' },
    )
    const faults = manifests.map((manifest, index) => faultsIn(stdout, `${index}.ts`, manifest))
    if (status !== 0 && faults.every((one) => one.length === 0)) throw new Error(`${stdout}${stderr}`)
    return faults
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The compiler's words on one file, each with the line of the manifest that they are about. */
function faultsIn(output: string, file: string, manifest: Manifest): string[] {
  const lines = literal(manifest).split('\n')
  return output.split('\n').flatMap((text) => {
    const [, where, line, message] = /^(\S+)\((\d+),\d+\): error \w+: (.*)$/.exec(text) ?? []
    if (where !== file) return []
    return [`${nameOf(manifest)}: ${lines[Number(line) - 1]?.trim()} – ${message}`]
  })
}
