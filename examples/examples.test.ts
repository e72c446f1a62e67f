import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Commands } from '../cli/testing/commands.js'
import { compile } from './testing/compile.js'

// The examples as their readers run them: compiled, as programs, with a kpng that serves a file. small-nft, which needs a kernel,
// has a test of its own; all-ip runs in cli/flow.test.ts, json-lines in docs/json-lines.md.

const here = new URL('.', import.meta.url).pathname
const commands = new Commands()
const programs: ChildProcess[] = []
afterEach(async () => {
  for (const program of programs.splice(0)) program.kill('SIGKILL')
  await commands.cleanUp()
})

function serve(...args: string[]): string {
  const socket = `unix://${join(commands.folder(), 'kpng.sock')}`
  commands.start('kpng', 'file', ...args, 'to-api', '--listen', socket)
  return socket
}

/** Starts an example. Returns what it has printed so far. */
async function start(name: string, ...args: string[]): Promise<() => string> {
  const program = spawn(process.execPath, [await compile(name), '--error-delay', '100ms', ...args])
  programs.push(program)
  let printed = ''
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (chunk) => (printed += chunk))
  return () => printed
}

const prints = (printed: () => string, text: string) => expect.poll(printed, { timeout: 90_000 }).toContain(text)

describe('examples', () => {
  test('every one is run by a test', () => {
    const folders = readdirSync(here, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const names = folders.map(({ name }) => name).filter((name) => name !== 'testing')
    expect(names.sort()).toEqual(['all-ip', 'json-lines', 'nginx-upstreams', 'own-proxy', 'printer', 'small-nft'])
    const text = readFileSync(join(here, 'README.md'), 'utf8')
    for (const name of names) expect(text, `README.md has ${name}`).toContain(`](${name}/`)
  })

  test('printer prints where each Service leads', async () => {
    const api = serve('-i', join(here, 'state.yaml'))
    const printed = await start('printer', '--api', api, '--node-name', 'vm-001')
    await prints(printed, 'default/web → 10.244.1.5, fd00:244:1::5, 10.244.2.6\n')
  })

  test('own-proxy takes only its Services, and prints what changes', async () => {
    const manifests = readFileSync(join(here, 'own-proxy', 'manifests.yaml'), 'utf8')
    const file = join(commands.folder(), 'manifests.yaml')
    writeFileSync(file, manifests)
    const api = serve('-i', file, '--service-proxy-name', 'own-proxy')
    const printed = await start('own-proxy', '--api', api, '--node-name', 'vm-001')
    await prints(printed, '+ 192.0.2.77:80/tcp → 10.244.1.7:8080, 10.244.2.7:8080\n')
    writeFileSync(file, manifests.replace('10.244.2.7', '10.244.2.8'))
    await prints(printed, '+ 192.0.2.77:80/tcp → 10.244.1.7:8080, 10.244.2.8:8080\n')
    expect(printed()).not.toContain('ordinary')
  })

  test('nginx-upstreams writes its file, with the flags of its own and of every client', async () => {
    const api = serve('-i', join(here, 'nginx-upstreams', 'manifests.yaml'), '--service-proxy-name', 'nginx')
    const file = join(commands.folder(), 'upstreams.conf')
    const flags = ['--file', file, '--context', 'http', '--api', api, '--node-name', 'vm-001']
    const printed = await start('nginx-upstreams', ...flags, '--', '/no/such/nginx', '-c', 'x')
    await prints(printed, 'nginx is not installed')
    expect(existsSync(file) && readFileSync(file, 'utf8')).toContain(
      'upstream default_web_http {\n  server 10.244.1.5:8080;\n  server 10.244.2.6:8080;\n}\n',
    )
  })
})
