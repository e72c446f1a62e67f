import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Commands, type Running } from './testing/commands.js'

// What the README tells people to do, done.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const example = (name: string) => new URL(`../examples/${name}`, import.meta.url).pathname

/** Starts a server on a free port and gives its address. */
async function serve(...args: string[]): Promise<{ server: Running; api: string }> {
  const server = commands.start('kpng', ...args, 'to-api', '--listen', 'tcp://127.0.0.1:0')
  await server.says('Serving the kpng API')
  const api = /listen="tcp:\/\/([^"]+)"/.exec(server.stderr)?.[1] as string
  return { server, api }
}

const lines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('a state file, served', () => {
  test('is printed by kpng-json as one line a service, for the node that was asked for', async () => {
    const { api } = await serve('file', '-i', example('state.yaml'))
    const { code, stdout } = await commands.run('kpng-json', '--api', api, '--node-name', 'vm-001', '--once')
    expect(code).toBe(0)
    const services = lines(stdout)
    expect(services.map(({ Service }) => Service.Name)).toEqual(['cache', 'web', 'dns'])
    expect(services[1].Endpoints.map(({ IPs, Local }: { IPs: object; Local?: boolean }) => [IPs, Local])).toEqual([
      [{ V4: ['10.244.1.5'] }, true],
      [{ V6: ['fd00:244:1::5'] }, true],
      [{ V4: ['10.244.2.6'] }, undefined],
    ])
    expect(services[0]).toMatchObject({
      Service: { SessionAffinity: { ClientIP: { TimeoutSeconds: 10800 } } },
      Endpoints: null,
    })
  })

  test('is followed while it is edited; a mistake in it loses nothing', async () => {
    const folder = commands.folder()
    const file = join(folder, 'state.yaml')
    const text = readFileSync(example('state.yaml'), 'utf8')
    const write = (content: string) => {
      writeFileSync(`${file}.new`, content)
      renameSync(`${file}.new`, file)
    }
    write(text)
    const { server, api } = await serve('file', '-i', file)
    const json = commands.start('kpng-json', '--api', api, '--node-name', 'vm-001')
    await json.says('"10.244.2.6"')
    write(text.replace('10.244.2.6', '10.244.2.66'))
    await json.says('"10.244.2.66"')
    write('services: [')
    await server.says(/state\.yaml:1:\d+/)
    const { stdout } = await commands.run('kpng-json', '--api', api, '--node-name', 'vm-001', '--once')
    expect(stdout).toContain('"10.244.2.66"')
    write(text.replace('10.244.2.6', '10.244.2.7'))
    await json.says('"V4":["10.244.2.7"]')
  })

  test('comes back by itself after the server was killed', async () => {
    const folder = commands.folder()
    const socket = `unix://${join(folder, 'kpng.sock')}`
    const start = async (file: string) => {
      const server = commands.start('kpng', 'file', '-i', file, 'to-api', '--listen', socket)
      await server.says('Serving the kpng API')
      return server
    }
    const first = await start(example('state.yaml'))
    const json = commands.start('kpng-json', '--api', socket, '--node-name', 'vm-001', '--error-delay', '100ms')
    await json.says('"10.244.2.6"')
    await first.stop('SIGKILL')
    await json.says('Connection lost')
    const changed = join(folder, 'changed.yaml')
    writeFileSync(changed, readFileSync(example('state.yaml'), 'utf8').replace('10.244.2.6', '10.244.2.99'))
    await start(changed)
    await json.says('"10.244.2.99"')
    expect(await json.stop()).toMatchObject({ code: 0 })
  })
})

test('a relay serves what its upstream serves, and to-file writes what file reads', async () => {
  const { api } = await serve('file', '-i', example('state.yaml'))
  const relay = await serve('api', '--api', api)
  const output = join(commands.folder(), 'copy.yaml')
  const writer = commands.start('kpng', 'api', '--api', relay.api, 'to-file', '-o', output)
  await expect
    .poll(
      () => {
        try {
          return readFileSync(output, 'utf8')
        } catch {
          return ''
        }
      },
      { timeout: 90_000 },
    )
    .toContain('timeoutseconds: 10800')
  await writer.stop()
  const copy = await serve('file', '-i', output)
  const print = (address: string) => commands.run('kpng-json', '--api', address, '--node-name', 'vm-002', '--once')
  const [original, relayed, copied] = await Promise.all([print(api), print(relay.api), print(copy.api)])
  expect(relayed.stdout).toBe(original.stdout)
  expect(copied.stdout).toBe(original.stdout)
})

test('to-local does in one process what to-api and local do in two', async () => {
  const { api } = await serve('file', '-i', example('state.yaml'))
  const [two, one] = await Promise.all([
    commands.run('kpng', 'local', '--api', api, '--node-name', 'vm-001', '--once', 'to-json'),
    commands.run('kpng', 'file', 'to-local', 'to-json', '-i', example('state.yaml'), '--once', '--node-name', 'vm-001'),
  ])
  expect(one).toMatchObject({ code: 0, stdout: two.stdout })
})

describe('a program of your own', () => {
  test('gets the lines on its standard input, and its output is printed', async () => {
    const { api } = await serve(
      'file',
      '-i',
      example('all-ip/kpng-example.yaml'),
      '--service-proxy-name',
      'kpng-example',
    )
    const program = commands.startWith(
      { CALLOUT: example('all-ip/all-ip') },
      'kpng-callout',
      '--api',
      api,
      '--node-name',
      'vm-002',
      '--once',
    )
    const { stdout } = await program.finished
    expect(stdout.trim().split('\n')).toEqual([
      'iptables -t nat -A KPNG-ALL-IP -d 10.0.0.55 -j DNAT --to-destination 11.0.2.2',
      'ip6tables -t nat -A KPNG-ALL-IP -d 1000::55 -j DNAT --to-destination 1100::202',
    ])
  })

  test('that fails or is missing is said so, and called again', async () => {
    const { api } = await serve('file', '-i', example('state.yaml'))
    const failing = commands.startWith({ CALLOUT: 'false' }, 'kpng-callout', '--api', api)
    await failing.says(/The program false ended with code 1/)
    const missing = commands.start('kpng-callout', '--api', api, '--program', 'no-such-program')
    await missing.says(/CALLOUT: no-such-program is not installed/)
    await missing.says(/(no-such-program is not installed.*\n[\s\S]*){2}/)
  })

  test('that does not end does not keep kpng when it is told to stop', async () => {
    const folder = commands.folder()
    const begun = join(folder, 'begun')
    const program = join(folder, 'hangs')
    writeFileSync(program, `#!/bin/sh\ntouch ${begun}\nexec sleep 25 2>/dev/null\n`, { mode: 0o755 })
    const { api } = await serve('file', '-i', example('state.yaml'))
    const kpng = commands.start('kpng-callout', '--api', api, '--program', program)
    await expect.poll(() => existsSync(begun), { timeout: 90_000 }).toBe(true)
    const stopped = performance.now()
    expect(await kpng.stop()).toMatchObject({ code: 1, stderr: expect.stringContaining('kpng did not stop in time') })
    expect(performance.now() - stopped).toBeLessThan(15_000)
  })
})

test('logs are lines for people or, when asked for, JSON', async () => {
  const { api } = await serve('file', '-i', example('state.yaml'))
  const { stderr } = await commands.run('kpng-json', '--api', api, '--once', '--log-format', 'json', '-v', '2')
  const entries = lines(stderr)
  expect(entries[0]).toMatchObject({ level: 'info', msg: 'Connected', api })
  expect(entries.some(({ msg, v }) => msg === 'Synced' && v === 2)).toBe(true)
})

test('a reader that has seen enough is no failure', async () => {
  const { api } = await serve('file', '-i', example('state.yaml'))
  const json = commands.start('kpng-json', '--api', api, '--node-name', 'vm-001')
  await json.says('"Name":"web"')
  json.child.stdout?.destroy()
  await json.stop()
  expect(json.stderr).not.toContain('EPIPE')
})
