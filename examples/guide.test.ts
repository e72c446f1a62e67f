import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Commands } from '../cli/testing/commands.js'

// The programs in docs/write-a-backend.md: what begins with an import is whole, so it compiles, and what calls run() runs.

const root = new URL('..', import.meta.url).pathname
const folder = join(root, 'examples', 'dist', 'guide')
const commands = new Commands()
const guide = readFileSync(join(root, 'docs', 'write-a-backend.md'), 'utf8')
const programs = [...guide.matchAll(/^```ts\n(import [\s\S]*?)^```$/gm)].map(([, text], index) => ({
  name: `program-${index}`,
  text: text as string,
}))

beforeAll(() => mkdirSync(folder, { recursive: true }))
afterAll(async () => {
  rmSync(join(root, 'examples', 'dist'), { recursive: true, force: true })
  await commands.cleanUp()
})

describe('docs/write-a-backend.md', () => {
  test('its whole programs compile', () => {
    expect(programs).toHaveLength(5)
    const given = "declare const myBackend: import('@kpng/client').Backend\n"
    for (const { name, text } of programs) writeFileSync(join(folder, `${name}.ts`), given + text)
    const config = {
      extends: join(root, 'tsconfig.base.json'),
      compilerOptions: { composite: false, declaration: false, noEmit: true, noUnusedLocals: false },
      include: [join(folder, '*.ts')],
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { status, stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  })

  const runnable = programs.filter(({ text }) => text.includes('await run('))
  test.each([
    [0, 'cache 0\nweb 3\ndns 0\n'],
    [1, '10.96.0.20:6379/tcp → drop\n10.96.0.10:80/tcp → 10.244.1.5:8080, 10.244.2.6:8080\n'],
  ])('its program %i with run() runs', async (index, expected) => {
    const { name, text } = runnable[index] as { name: string; text: string }
    const outfile = join(folder, `${name}.mjs`)
    await build({ stdin: { contents: text, loader: 'ts' }, outfile, format: 'esm', logLevel: 'error' })
    const socket = `unix://${join(commands.folder(), 'kpng.sock')}`
    commands.start('kpng', 'file', '-i', join(root, 'examples/state.yaml'), 'to-api', '--listen', socket)
    const flags = ['--api', socket, '--node-name', 'vm-001', '--once', '--error-delay', '100ms']
    expect(execFileSync(process.execPath, [outfile, ...flags], { encoding: 'utf8', timeout: 30_000 })).toContain(
      expected,
    )
  })
})
