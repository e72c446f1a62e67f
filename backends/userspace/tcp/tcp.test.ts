import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { type UserspaceBackend, userspaceBackend } from '../backend.js'
import type { UserspaceOptions } from '../options.js'
import { Cluster, endpoint } from '../testing/cluster.js'
import { ask, outcome, recordingLog, type TestServer, tcpServer } from '../testing/peers.js'
import { moverOptions, movers } from '../testing/splice-script.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

let mover: (typeof movers)[number] = 'portable'

async function start(options: UserspaceOptions = {}) {
  const common = { allowLoopback: true, syncPeriodMs: 0, ...(await moverOptions(mover)) }
  const backend: UserspaceBackend = userspaceBackend({ ...common, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  return { backend, cluster: new Cluster(backend) }
}

async function pod(name: string, serve?: (socket: Socket) => void): Promise<TestServer> {
  const server = await tcpServer('127.20.0.1', name, serve ? { serve } : {})
  closers.push(() => server.close())
  return server
}

const at = (server: TestServer) => endpoint('127.20.0.1', server.port)
const [ip, port] = ['127.40.0.1', 8080]

describe.each(movers)('TCP on the service address, %s', (each) => {
  beforeAll(() => {
    mover = each
  })

  it('takes endpoints in turn', async () => {
    const { cluster } = await start()
    const pods = await Promise.all(['a', 'b', 'c'].map((name) => pod(name)))
    await cluster.set('web', {}, pods.map(at))
    const answers: string[] = []
    for (let i = 0; i < 6; i++) answers.push(await ask(ip, port))
    expect(answers.slice(0, 3).sort()).toEqual(['a', 'b', 'c'])
    expect(answers.slice(3)).toEqual(answers.slice(0, 3))
  })

  it('passes half-close on in both directions', async () => {
    const { cluster } = await start()
    // Answers only once the client has ended its side.
    const server = await pod('echo', (socket) => {
      let heard = ''
      socket.on('data', (chunk) => {
        heard += chunk
      })
      socket.on('end', () => socket.end(`heard ${heard}`))
    })
    await cluster.set('web', {}, [at(server)])
    expect(await ask(ip, port, 'hello')).toBe('heard hello')
  })

  it('copies a megabyte each way, byte for byte, and counts it', async () => {
    const { cluster, backend } = await start()
    const server = await pod('echo', (socket) => socket.pipe(socket))
    await cluster.set('web', {}, [at(server)])
    const text = '0123456789abcdef'.repeat(65_536)
    expect((await ask(ip, port, text)) === text).toBe(true)
    await until(
      'the connection is counted as ended',
      () => backend.observations.traffic.get('default/web:http')?.active === 0,
    )
    expect(backend.observations.traffic.get('default/web:http')).toMatchObject({
      connections: 1,
      bytesToEndpoint: text.length,
      bytesToClient: text.length,
      failures: 0,
    })
  })

  it('tries the next endpoint when one refuses', async () => {
    const { cluster, backend } = await start()
    const alive = await pod('alive')
    const dead = await tcpServer('127.20.0.1', 'dead')
    await dead.close()
    await cluster.set('web', {}, [at(alive), at(dead)])
    for (let i = 0; i < 10; i++) expect(await ask(ip, port)).toBe('alive')
    expect(backend.observations.traffic.get('default/web:http')?.dialFailures).toBeGreaterThan(0)
    expect(backend.observations.traffic.get('default/web:http')?.failures).toBe(0)
  })

  it('resets the client when no endpoint answers', async () => {
    const { cluster, backend } = await start()
    const dead = await tcpServer('127.20.0.1', 'dead')
    await dead.close()
    await cluster.set('web', {}, [at(dead)])
    expect(await outcome(ip, port)).toBe('ECONNRESET')
    expect(backend.observations.traffic.get('default/web:http')).toMatchObject({ failures: 1, dialFailures: 4 })
  })

  it('refuses when there are no endpoints, and serves when there are', async () => {
    const { cluster } = await start()
    await cluster.set('web', {})
    expect(await outcome(ip, port)).toBe('ECONNREFUSED')
    const server = await pod('a')
    await cluster.set('web', {}, [at(server)])
    expect(await outcome(ip, port)).toBe('a')
    await cluster.set('web', {})
    expect(await outcome(ip, port)).toBe('ECONNREFUSED')
    await cluster.set('web', undefined)
    expect(await outcome(ip, port)).toBe('ECONNREFUSED')
  })

  it('passes a reset of the endpoint on to the client', async () => {
    const { cluster } = await start()
    const server = await pod('rude', (socket) => void socket.once('data', () => socket.resetAndDestroy()))
    await cluster.set('web', {}, [at(server)])
    await expect(ask(ip, port, 'hello')).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  it('holds back an endpoint that sends to a client that never reads', async () => {
    const { cluster, backend } = await start()
    let sent = 0
    const server = await pod('flood', (socket) => {
      const chunk = Buffer.alloc(65_536)
      const more = () => {
        while (sent < 500e6) {
          sent += chunk.length
          if (!socket.write(chunk)) return void socket.once('drain', more)
        }
      }
      more()
    })
    await cluster.set('web', {}, [at(server)])
    const client = connect({ host: ip, port })
    client.pause()
    await until('something was sent', () => sent > 0)
    const before = process.memoryUsage().rss
    // Kernel buffers of three sockets fill up; then it stands still.
    let stopped = 0
    await until('nothing more is sent', async () => {
      const before = sent
      await pause(300)
      stopped = sent
      return sent === before
    })
    await pause(200)
    expect(sent).toBe(stopped)
    expect(sent).toBeLessThan(60e6)
    expect(process.memoryUsage().rss - before).toBeLessThan(100e6)
    client.destroy()
    await until('the connection is gone', () => backend.observations.traffic.get('default/web:http')?.active === 0)
  })

  it.runIf(process.platform === 'linux')('finds out when a peer has vanished, on both sides', async () => {
    const { cluster } = await start()
    const server = await pod('quiet', () => {})
    await cluster.set('web', {}, [at(server)])
    const client = connect({ host: ip, port })
    closers.push(async () => void client.destroy())
    await until('the pod has the connection', () => server.accepted() === 1)
    // In the kernel's list of connections "02" is the keepalive timer; addresses are hexadecimal, the last byte first.
    const keptAlive = (column: 1 | 2, address: string) =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .some((words) => words[column] === address && words[3] === '01' && words[5]?.startsWith('02:'))
    const hex = (number: number) => number.toString(16).toUpperCase().padStart(4, '0')
    await until('the connection from the client is', () => keptAlive(1, `0100287F:${hex(port)}`))
    await until('the connection to the pod is', () => keptAlive(2, `0100147F:${hex(server.port)}`))
  })

  it('logs a connection in the words that people know', async () => {
    const { lines, log } = recordingLog()
    const { cluster } = await start({ log })
    const server = await pod('answer')
    await cluster.set('web', {}, [at(server)])
    await ask(ip, port, 'question')
    await until('the end is logged', () => lines.at(-1)?.fields.direction === 'from backend' && lines.length > 10)
    const said = lines.map(({ level, message }) => `${level} ${message}`)
    expect(said).toEqual([
      'info Proxying in user space',
      '1 Adding new service',
      '2 Proxying for service',
      '3 Accepted TCP connection from remote',
      '4 NextEndpoint for service',
      '3 Mapped service to endpoint',
      '4 Creating proxy between remote and local addresses',
      '4 Copying remote address bytes',
      '4 Copying remote address bytes',
      '4 Copied remote address bytes',
      '4 Copied remote address bytes',
    ])
    expect(lines.slice(-2).map(({ fields }) => [fields.bytes, fields.direction])).toEqual([
      [8, 'to backend'],
      [6, 'from backend'],
    ])
    expect(lines[4]?.fields).toMatchObject({
      servicePortName: 'default/web:http',
      endpoints: [`127.20.0.1:${server.port}`],
    })
  })
})

describe.each(movers)('endpoints that go, %s', (each) => {
  beforeAll(() => {
    mover = each
  })

  it('lets connections finish, and gives new ones to others', async () => {
    const { cluster, backend } = await start()
    const slow = await pod('slow', (socket) => void socket.once('data', () => socket.end('slow done')))
    const other = await pod('other')
    await cluster.set('web', {}, [at(slow)])
    const client = connect({ host: ip, port })
    let answer = ''
    client.on('data', (chunk) => {
      answer += chunk
    })
    await until('the pod has the connection', () => carries(backend) && slow.accepted() === 1)
    await cluster.set('web', {}, [at(other)])
    for (let i = 0; i < 5; i++) expect(await ask(ip, port)).toBe('other')
    client.end('go on')
    await until('the old connection finishes', () => answer === 'slow done')
  })

  it('resets connections after drainSeconds', async () => {
    const { cluster, backend } = await start({ drainSeconds: 0.2 })
    const slow = await pod('slow', () => {})
    const other = await pod('other')
    await cluster.set('web', {}, [at(slow)])
    const client = connect({ host: ip, port })
    const reset = new Promise<string>((resolve) =>
      client.on('error', (error: NodeJS.ErrnoException) => resolve(`${error.code}`)),
    )
    await until('the pod has the connection', () => carries(backend) && slow.accepted() === 1)
    const removed = Date.now()
    await cluster.set('web', {}, [at(other)])
    expect(await reset).toBe('ECONNRESET')
    expect(Date.now() - removed).toBeGreaterThanOrEqual(150)
  })

  it('an endpoint that drains keeps its connections, however long they take', async () => {
    const { cluster, backend } = await start({ drainSeconds: 0 })
    const [slow, other] = [await pod('slow', () => {}), await pod('other')]
    await cluster.set('web', {}, [at(slow)])
    const client = await connected(backend, slow)
    const nowhere = { scopes: { internal: false, external: false, cluster: false } }
    await cluster.set('web', {}, [endpoint('127.20.0.1', slow.port, nowhere), at(other)])
    for (let i = 0; i < 3; i++) expect(await ask(ip, port)).toBe('other')
    expect(client.ended()).toBe(false)
    await cluster.set('web', {}, [at(other)])
    await until('the connection is reset', client.ended)
  })

  it('an endpoint that comes back in time keeps its connections', async () => {
    const { cluster, backend } = await start({ drainSeconds: 2 })
    const slow = await pod('slow', () => {})
    await cluster.set('web', {}, [at(slow)])
    const client = await connected(backend, slow)
    await cluster.set('web', {}, [])
    await cluster.set('web', {}, [at(slow)])
    await pause(2500)
    expect(client.ended()).toBe(false)
    await cluster.set('web', {}, [])
    await until('the connection is reset', client.ended)
  })

  it('resets connections through an address that went, and no others', async () => {
    const { cluster, backend } = await start({ drainSeconds: 0.1 })
    const slow = await pod('slow', () => {})
    const [stays, goes] = ['127.40.0.2', '127.40.0.3']
    await cluster.set('web', { ips: { clusterIps: { v4: [stays] }, externalIps: { v4: [goes] } } }, [at(slow)])
    const [one, other] = [await connected(backend, slow, stays), await connected(backend, slow, goes)]
    await cluster.set('web', { ips: { clusterIps: { v4: [stays] } } }, [at(slow)])
    await until('the connection is reset', other.ended)
    await pause(200)
    expect(one.ended()).toBe(false)
  })

  it('close() ends the connections of a service that went before', async () => {
    const { cluster, backend } = await start()
    const slow = await pod('slow', () => {})
    await cluster.set('web', {}, [at(slow)])
    const client = await connected(backend, slow)
    await cluster.set('web', undefined)
    await pause(50)
    expect(client.ended()).toBe(false)
    await backend.close()
    await until('the connection is reset', client.ended)
  })

  it('an endpoint that never answers costs its time-out, and the next one has the client', async () => {
    const { cluster, backend } = await start({ dialTimeoutsMs: [100, 1000] })
    const silent = await silentServer('127.20.0.2')
    const alive = await pod('alive')
    await cluster.set('web', {}, [endpoint('127.20.0.2', silent), at(alive)])
    for (let i = 0; i < 4; i++) expect(await ask(ip, port)).toBe('alive')
    expect(backend.observations.traffic.get('default/web:http')?.dialFailures).toBeGreaterThan(0)
  })

  it('gives up on a service whose only endpoint never answers, within a bounded time', async () => {
    const { cluster } = await start({ dialTimeoutsMs: [50, 100] })
    await cluster.set('web', {}, [endpoint('127.20.0.2', await silentServer('127.20.0.2'))])
    const started = Date.now()
    expect(await outcome(ip, port)).toBe('ECONNRESET')
    expect(Date.now() - started).toBeLessThan(1000)
  })
})

const carries = ({ observations }: UserspaceBackend) => observations.traffic.get('default/web:http')?.active === 1

/** A client whose connection has reached the pod. */
async function connected({ observations }: UserspaceBackend, server: TestServer, host = ip) {
  const before = server.accepted()
  const active = () => observations.traffic.get('default/web:http')?.active ?? 0
  const activeBefore = active()
  const client = connect({ host, port })
  closers.push(async () => void client.destroy())
  let ended = false
  client.on('error', () => {})
  client.on('close', () => {
    ended = true
  })
  client.resume()
  await until('the pod has the connection', () => server.accepted() === before + 1)
  // Until then the proxy may give the client another endpoint.
  await until('the proxy carries it', () => active() === activeBefore + 1)
  return { ended: () => ended }
}

/** A program that listens and is stopped: once its queue is full the kernel leaves connections unanswered. */
async function silentServer(host: string): Promise<number> {
  const program = `require('net').createServer().listen({port:0,host:'${host}',backlog:1},function(){process.send(this.address().port)})`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  closers.push(async () => void child.kill('SIGKILL'))
  const [number] = (await once(child, 'message')) as [number]
  child.kill('SIGSTOP')
  for (let answered = true; answered; ) {
    const socket = connect({ host, port: number })
    closers.push(async () => void socket.destroy())
    socket.on('error', () => {})
    answered = await Promise.race([once(socket, 'connect').then(() => true), pause(150).then(() => false)])
  }
  return number
}
