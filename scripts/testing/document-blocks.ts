import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '@kpng/api'
import { dump, loadAll } from 'js-yaml'
import type { Block } from './documents.js'

interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
}

/** Kinds that the playground serves, so that kubectl can ask it about them. */
const served = new Set([
  'Service',
  'EndpointSlice',
  'Endpoints',
  'Node',
  'Pod',
  'Deployment',
  'Namespace',
  'ServiceCIDR',
])

/** What an API server and kpng itself say against a text; empty if they take it. */
export interface Judges {
  readonly apply: (text: string) => string
  readonly readState: (text: string) => string
  readonly readConfiguration: (text: string) => string
}

/** What is wrong with a YAML block: objects are given to an API server, state files and configurations to kpng. */
export function yamlFaults(path: string, block: Block, judges: Judges): string[] {
  const where = `${path}:${block.line}`
  try {
    const parts = loadAll(block.text) as (KubeObject | null)[]
    return parts.flatMap((part) => {
      const fault = part === null || typeof part !== 'object' ? '' : judge(part, judges)
      return fault === '' ? [] : [`${where}: ${fault}`]
    })
  } catch (error) {
    return [`${where}: ${messageOf(error)}`]
  }
}

function judge(part: KubeObject, { apply, readState, readConfiguration }: Judges): string {
  if (part.kind !== undefined && served.has(part.kind)) return apply(dump(part))
  if (part.kind === 'KubeProxyConfiguration') return readConfiguration(dump(part))
  return 'services' in part || 'nodes' in part ? readState(dump(part)) : ''
}

/** What the compiler says against complete TypeScript blocks: those that import something and are not marked as an excerpt. */
export function typeFaults(root: string, blocks: readonly { path: string; block: Block }[]): string[] {
  const complete = blocks.filter(
    ({ block }) => ['ts', 'typescript'].includes(block.language) && !block.excerpt && /^import /m.test(block.text),
  )
  const folder = mkdtempSync(join(tmpdir(), 'kpng-docs-types-'))
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    mkdirSync(join(folder, 'blocks'))
    for (const [index, { block }] of complete.entries())
      writeFileSync(join(folder, 'blocks', `${index}.ts`), block.text)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.base.json'),
        compilerOptions: {
          composite: false,
          declaration: false,
          sourceMap: false,
          noEmit: true,
          noUnusedLocals: false,
        },
        include: ['blocks'],
      }),
    )
    const tsc = join(root, 'node_modules', '.bin', 'tsc')
    const { stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
    return [...stdout.matchAll(/^blocks\/(\d+)\.ts\((\d+),\d+\): (.*)$/gm)].map(([, index, line, message]) => {
      const { path, block } = complete[Number(index)] ?? { path: '', block: { line: 1 } }
      return `${path}:${block.line + Number(line) - 1}: ${message} Mark a block that is not a whole program with <!-- excerpt -->.`
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
