import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/client'
import { endpoint, FakeCore, type TestService, tcp, udp } from '@kpng/client/testing'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { NginxUpstreams } from './upstreams.js'

const hasNginx = spawnSync('nginx', ['-v'], { stdio: 'ignore' }).status === 0
if (!hasNginx)
  console.warn(
    'SKIPPED: examples/nginx-upstreams with a real nginx: nginx is not installed. It is in the Debian package nginx-light.',
  )

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-nginx-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const file = () => join(folder, 'upstreams.conf')
const written = () => readFileSync(file(), 'utf8')

function start(nginx: readonly [string, ...string[]], context: 'http' | 'stream' = 'http'): FakeCore {
  const core = new FakeCore(new NginxUpstreams({ file: file(), context, nginx, log: silentLog }))
  onTestFinished(() => core.stop())
  return core
}

const web: TestService = {
  name: 'web',
  ports: [tcp(80, { name: 'http' }), udp(53, { name: '' })],
  endpoints: [endpoint('10.244.1.5 fd00:244::5'), endpoint('10.244.1.6', { scopes: ['internal'] })],
}

describe('the file', () => {
  const absent = ['/no/such/nginx'] as const

  test('has a block per TCP port with the endpoints for traffic from outside, in http', async () => {
    await start(absent)
      .set(web, { name: 'api', ports: [tcp(8443, { name: '' })] })
      .sync()
    expect(written()).toBe(`# Written by nginx-upstreams for kpng. Changes are overwritten.

upstream default_api_8443 {
  server 127.0.0.1:1 down; # no endpoints
}

upstream default_web_http {
  server 10.244.1.5:8080;
  server [fd00:244::5]:8080;
}
`)
  })

  test('has the UDP ports too, in stream, and session affinity as a hash', async () => {
    const sessionAffinity = { case: 'clientIp' as const, value: { timeoutSeconds: 10 } }
    await start(absent, 'stream')
      .set({ ...web, sessionAffinity })
      .sync()
    expect(written()).toContain(`upstream default_web_53 {
  hash $remote_addr consistent;
  server 10.244.1.5:8080;
`)
  })

  test('holds nothing that is not an address or a name, whatever a server sends', async () => {
    await start(absent)
      .set({ ...web, ports: [tcp(80, { name: 'a { } b' })], endpoints: [endpoint('10.0.0.1;'), endpoint('10.0.0.2')] })
      .sync()
    expect(written()).toContain('upstream default_web_a-----b {\n  server 10.0.0.2:8080;\n}\n')
  })
})

describe('nginx', () => {
  /** A program that notes how it is called and what the file holds then, and fails while there is a file called `refuse`. */
  function fake(): readonly [string, ...string[]] {
    const program = join(folder, 'nginx')
    writeFileSync(
      program,
      `#!/bin/sh\necho "$* $(grep -c '^upstream' ${file()})" >> ${folder}/calls\n` +
        `test ! -e ${folder}/refuse || { echo 'host not found in upstream' >&2; exit 1; }\n`,
    )
    chmodSync(program, 0o755)
    return [program, '-c', 'my nginx.conf']
  }
  const calls = () => {
    const lines = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
    rmSync(join(folder, 'calls'))
    return lines
  }

  test('tests the new file and is reloaded, and only if something in it changed', async () => {
    const core = start(fake())
    await core.set(web).sync()
    expect(calls()).toEqual(['-c my nginx.conf -t 1', '-c my nginx.conf -s reload 1'])
    await core.set({ ...web, labels: { app: 'web' } }).sync()
    expect(existsSync(join(folder, 'calls'))).toBe(false)
    expect(readdirSync(folder).sort()).toEqual(['nginx', 'upstreams.conf'])
  })

  test('refuses: the file is as it was, nothing is reloaded, and it is tried again', async () => {
    const core = start(fake())
    await core.set(web).sync()
    const before = written()
    calls()
    writeFileSync(join(folder, 'refuse'), '')
    await expect(core.delete('web').sync()).rejects.toThrow(/nginx refuses .*host not found in upstream/)
    expect(calls()).toEqual(['-c my nginx.conf -t 0'])
    expect(written()).toBe(before)
    rmSync(join(folder, 'refuse'))
    await core.sync()
    expect(calls()).toEqual(['-c my nginx.conf -t 0', '-c my nginx.conf -s reload 0'])
  })

  test('refuses the first file: there is none then', async () => {
    writeFileSync(join(folder, 'refuse'), '')
    await expect(start(fake()).set(web).sync()).rejects.toThrow('nginx refuses')
    expect(existsSync(file())).toBe(false)
  })

  test('is reloaded at the start though the file is right: the process before may have ended too early', async () => {
    await start(fake()).set(web).sync()
    calls()
    await start(fake()).set(web).sync()
    expect(calls()).toHaveLength(2)
  })
})

describe.skipIf(!hasNginx)('a real nginx', () => {
  const servers: Server[] = []
  let nginx: ChildProcess | undefined
  afterEach(async () => {
    for (const server of servers.splice(0)) server.close()
    if (nginx?.kill('SIGTERM')) await once(nginx, 'exit')
    nginx = undefined
  })

  async function pod(name: string): Promise<number> {
    const server = createServer((_, response) => response.end(name)).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  const ask = (): Promise<string> =>
    new Promise((resolve) => {
      const request = get({ socketPath: join(folder, 'http.sock'), agent: false }, (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve(response.statusCode === 200 ? text : `${response.statusCode}`))
      })
      request.on('error', (error) => resolve(error.message))
    })
  const answers = (expected: string) => expect.poll(ask, { timeout: 90_000 }).toBe(expected)

  test('follows the endpoints, answers 502 without one, and survives a Service that it still needs', async () => {
    const [a, b] = [await pod('a'), await pod('b')]
    const at = (port: number): TestService => ({
      name: 'web',
      ports: [tcp(80, { name: 'http', targetPort: port })],
      endpoints: [endpoint('127.0.0.1')],
    })
    const conf = join(folder, 'nginx.conf')
    writeFileSync(
      conf,
      `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
      http { access_log off; include ${file()};
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
        server { listen unix:${folder}/http.sock; location / { proxy_pass http://default_web_http; } } }`,
    )
    const command = ['nginx', '-e', join(folder, 'error.log'), '-c', conf] as const
    const core = start(command)
    // nginx is not running yet. The file is written all the same, and nginx starts with it.
    await expect(core.set(at(a)).sync()).rejects.toThrow('nginx cannot be reloaded; is it running?')
    nginx = spawn(command[0], command.slice(1), { stdio: 'inherit' })
    await answers('a')
    await expect.poll(() => readFileSync(join(folder, 'pid'), 'utf8'), { timeout: 90_000 }).toMatch(/\d/)
    await core.set(at(b)).sync()
    await answers('b')
    await core.set({ ...at(b), endpoints: [] }).sync()
    await answers('502')
    await expect(core.delete('web').sync()).rejects.toThrow(/host not found in upstream "default_web_http"/)
    await core.set(at(a)).sync()
    await answers('a')
  })

  const streamModule = '/usr/lib/nginx/modules/ngx_stream_module.so'
  test.skipIf(!existsSync(streamModule))('takes the file in a stream context', async () => {
    await start(['/no/such/nginx'], 'stream').set(web).sync()
    const conf = join(folder, 'nginx.conf')
    writeFileSync(conf, `load_module ${streamModule}; pid ${folder}/pid; events {} stream { include ${file()}; }`)
    const { status, stderr } = spawnSync('nginx', ['-t', '-e', join(folder, 'error.log'), '-c', conf], {
      encoding: 'utf8',
    })
    expect({ status, stderr }).toMatchObject({ status: 0 })
  })
})
