import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// The packages as their users get them: packed, installed into an empty project, and used there.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const root = new URL('..', import.meta.url).pathname
/** Every package of the workspace that the command needs, and the command itself. */
const folders = ['cli', ...needed('cli')]

function needed(folder: string, found = new Set<string>()): string[] {
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) {
    if (!name.startsWith('@kpng/')) continue
    const its = name.replace('@kpng/backend-', 'backends/').replace('@kpng/', '')
    if (!found.has(its)) needed(its, found.add(its))
  }
  return [...found]
}

function pack(into: string): string[] {
  const workspaces = folders.flatMap((folder) => ['--workspace', folder])
  execFileSync('npm', ['pack', '--pack-destination', into, ...workspaces], { cwd: root, stdio: 'pipe' })
  return readdirSync(into).map((name) => join(into, name))
}

test('the ten-line example compiles and runs in an empty TypeScript project, and so does the command', async () => {
  const folder = commands.folder()
  const tarballs = join(folder, 'tarballs')
  const project = join(folder, 'project')
  mkdirSync(tarballs)
  mkdirSync(project)
  const packages = pack(tarballs)
  expect(packages).toHaveLength(folders.length)

  writeFileSync(join(project, 'package.json'), '{ "name": "mine", "type": "module", "private": true }')
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        module: 'nodenext',
        target: 'es2023',
        outDir: 'out',
        types: ['node'],
        typeRoots: [join(root, 'node_modules/@types')],
      },
    }),
  )
  copyFileSync(join(root, 'examples/printer/printer.ts'), join(project, 'printer.ts'))
  writeFileSync(
    join(project, 'tested.ts'),
    `import { endpoint, FakeCore } from '@kpng/client/testing'
    const called: string[] = []
    const nothing = async () => {}
    const core = new FakeCore({
      setup: nothing, cleanup: nothing, close: nothing,
      sync: async (view) => void called.push(...view.services.keys()),
    })
    await core.set({ name: 'web', endpoints: [endpoint('10.244.1.5')] }).sync()
    await core.stop()
    console.log(called.join())`,
  )
  execFileSync('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...packages], {
    cwd: project,
    stdio: 'pipe',
  })
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: project, stdio: 'pipe' })

  expect(execFileSync(process.execPath, ['out/tested.js'], { cwd: project, encoding: 'utf8' })).toBe('default/web\n')

  const kpng = (...args: string[]) => execFileSync(join(project, 'node_modules/.bin/kpng'), args, { encoding: 'utf8' })
  expect(kpng('--version')).toMatch(/^\d+\.\d+\.\d+\n$/)
  // It runs from one file, and leaves V8's code cache beside it for the next time.
  expect(kpng('file', '-i', join(root, 'examples/state.yaml'), 'to-local', '--once', 'to-json')).toContain('"web"')
  const files = readdirSync(join(project, 'node_modules/kpng/bin'))
  expect(files).toContainEqual(expect.stringMatching(/^kpng-bundle\..*\.agent\.cache$/))

  const socket = `unix://${join(folder, 'kpng.sock')}`
  const server = commands.start('kpng', 'file', '-i', join(root, 'examples/state.yaml'), 'to-api', '--listen', socket)
  await server.says('Serving the kpng API')
  const printer = spawn(process.execPath, ['out/printer.js', '--api', socket, '--node-name', 'vm-001', '--once'], {
    cwd: project,
  })
  let output = ''
  printer.stdout.on('data', (chunk) => {
    output += chunk
  })
  await new Promise((resolve) => printer.on('close', resolve))
  expect(output).toBe(
    'default/cache → nobody\ndefault/web → 10.244.1.5, fd00:244:1::5, 10.244.2.6\nkube-system/dns → nobody\n',
  )
})
