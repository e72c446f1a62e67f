import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import type { ConnectionRecord } from '@kpng/client'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { userspaceBackend } from '../backend.js'
import type { UserspaceOptions } from '../options.js'
import { Cluster, endpoint } from '../testing/cluster.js'
import { ask, outcome, tcpServer } from '../testing/peers.js'
import { moverOptions } from '../testing/splice-script.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const [ip, port, podIp] = ['127.40.20.1', 8080, '127.20.20.1']
const ips = { clusterIps: { v4: [ip] } }

async function start(options: UserspaceOptions = {}) {
  const common = { allowLoopback: true, syncPeriodMs: 0, ...(await moverOptions('splice')) }
  const backend = userspaceBackend({ ...common, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  const traffic = () => backend.observations.traffic.get('default/web:http')
  return { backend, cluster: new Cluster(backend), traffic }
}

async function pod(serve?: (socket: Socket) => void, name = 'pod') {
  const server = await tcpServer(podIp, name, serve ? { serve } : {})
  closers.push(() => server.close())
  return server
}

/** A client whose connection has an endpoint. */
async function connected({ traffic }: Awaited<ReturnType<typeof start>>): Promise<Socket> {
  const client = connect({ host: ip, port, allowHalfOpen: true })
  client.on('error', () => {})
  closers.push(() => client.destroy())
  await until('the proxy carries it', () => traffic()?.active === 1)
  return client
}

const neverReads = (socket: Socket) => void socket.pause()

/** Bytes that differ everywhere. */
function bytes(length: number, seed: number): Buffer {
  const data = Buffer.alloc(length)
  for (let at = 0; at + 4 <= length; at += 4) data.writeUInt32LE((at * 2_654_435_761 + seed) >>> 0, at)
  return data
}

/** A digest of what arrives. A slow reader begins late and stops now and then, so the proxy must hold bytes back. */
async function received(socket: Socket, isSlow: boolean): Promise<string> {
  const hash = createHash('sha1')
  let chunks = 0
  const wait = (ms: number) => {
    socket.pause()
    setTimeout(() => socket.resume(), ms)
  }
  socket.on('data', (chunk: Buffer) => {
    hash.update(chunk)
    if (isSlow && ++chunks % 50 === 0) wait(3)
  })
  if (isSlow) wait(500)
  await once(socket, 'end')
  return hash.digest('hex')
}

const digest = (data: Buffer): string => createHash('sha1').update(data).digest('hex')

describe.runIf(process.platform === 'linux')('TCP in threads', () => {
  it('accepts, dials and forwards while the main thread stands still, and reports all of it afterwards', async () => {
    const { cluster, backend, traffic } = await start()
    const records: ConnectionRecord[] = []
    backend.observations.listener.connectionEnded = (record) => records.push(record)
    // Clients and a pod in a thread of their own. One client stays and is echoed; the others come one after another.
    const [connections, echoes] = [0, 1]
    const answered = new Int32Array(new SharedArrayBuffer(8))
    const others = new Worker(
      `const { workerData: answered, parentPort } = require('node:worker_threads')
       const { connect, createServer } = require('node:net')
       const server = createServer((socket) =>
         socket.on('data', (text) => (String(text) === 'short' ? socket.end('pod') : socket.write(text))))
       server.listen(0, '${podIp}', () => parentPort.postMessage(server.address().port))
       const heard = (which) => {
         Atomics.add(answered, which, 1)
         Atomics.notify(answered, which)
       }
       const next = () => {
         const client = connect(${port}, '${ip}').on('data', () => heard(${connections})).on('close', next)
         client.write('short')
       }
       parentPort.on('message', () => {
         const client = connect(${port}, '${ip}').on('data', () => {
           heard(${echoes})
           client.write('again')
         })
         client.write('again')
         next()
       })`,
      { eval: true, workerData: answered },
    )
    closers.push(() => others.terminate())
    const [podPort] = (await once(others, 'message')) as [number]
    const refuses = await pod()
    await refuses.close()
    await cluster.set('web', { ips }, [endpoint(podIp, refuses.port), endpoint(podIp, podPort)])
    others.postMessage('begin')
    for (const which of [connections, echoes]) {
      let result = 'ok'
      while (Atomics.load(answered, which) < 20 && result !== 'timed-out') {
        result = Atomics.wait(answered, which, Atomics.load(answered, which), 20_000)
      }
      expect(Atomics.load(answered, which)).toBeGreaterThanOrEqual(20)
    }
    expect(records).toEqual([])
    expect(traffic()?.dialFailures).toBeGreaterThan(0)
    await until('the connections that ended meanwhile are reported', () => records.length >= 19)
  })

  it('many streams at once, both ways, some to slow readers: every byte arrives as it was sent', {
    timeout: 300_000,
  }, async () => {
    const { cluster, traffic } = await start()
    // More than the kernel keeps for sockets that are not read.
    const size = 8_000_000
    const streams = 2
    const server = await pod((socket) => {
      socket.once('data', (first) => {
        socket.unshift(first)
        const seed = first.readUInt32LE(0)
        void received(socket, seed % 2 === 1).then((heard) => socket.end(heard))
        socket.write(bytes(size, seed))
      })
    })
    await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const one = async (seed: number) => {
      const client = connect({ host: ip, port, allowHalfOpen: true })
      const sent = bytes(size, seed)
      client.end(sent)
      const expected = Buffer.concat([sent, Buffer.from(digest(sent))])
      expect(await received(client, seed % 2 === 0)).toBe(digest(expected))
    }
    await Promise.all(Array.from({ length: streams }, (_, seed) => one(seed)))
    await until('all are over', () => traffic()?.active === 0)
    expect(traffic()).toMatchObject({ bytesToEndpoint: streams * size, bytesToClient: streams * (size + 40) })
  })

  it('passes on what an endpoint said before it reset the connection', async () => {
    const all = await start()
    const server = await pod((socket) => socket.once('data', () => socket.write('no', () => socket.resetAndDestroy())))
    await all.cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const client = await connected(all)
    let heard = ''
    client.on('data', (text) => {
      heard += text
    })
    client.write('may I?')
    await until('the connection is over', () => all.traffic()?.active === 0)
    await until('the client has heard it', () => heard === 'no')
  })

  it('notices the reset of a client whose endpoint does not read', async () => {
    const all = await start()
    const server = await pod(neverReads)
    await all.cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const client = await connected(all)
    client.write(Buffer.alloc(64e6))
    let last = 0
    await until('no more bytes are taken', () => {
      const before = last
      last = all.traffic()?.bytesToEndpoint ?? 0
      return last > 0 && last === before && client.writableLength > 0
    })
    client.resetAndDestroy()
    await until('the connection is over', () => all.traffic()?.active === 0)
  })

  it('notices the reset of an endpoint whose client does not read', async () => {
    const all = await start()
    let atPod: Socket | undefined
    const server = await pod((socket) => {
      atPod = socket
      socket.write(Buffer.alloc(64e6))
    })
    await all.cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const client = await connected(all)
    client.pause()
    await until('bytes came', () => (all.traffic()?.bytesToClient ?? 0) > 0)
    atPod?.resetAndDestroy()
    await until('the connection is over', () => all.traffic()?.active === 0)
  })

  it('a half-closed connection to an endpoint that does not read ends with its Service', async () => {
    const all = await start({ drainSeconds: 0 })
    const server = await pod(neverReads)
    await all.cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const client = await connected(all)
    client.end(Buffer.alloc(20e6))
    await until('bytes came', () => (all.traffic()?.bytesToEndpoint ?? 0) > 0)
    await all.cluster.set('web', undefined)
    await until('the client is reset', () => client.destroyed)
  })
})

describe.runIf(process.platform === 'linux')('several threads', () => {
  const clients = Array.from({ length: 9 }, (_, last) => `127.13.20.${last + 1}`)
  const sessionAffinity = { case: 'clientIp' as const, value: { timeoutSeconds: 100 } }

  it('count together, and share no address with another proxy', async () => {
    const { cluster, traffic, backend } = await start({ spliceThreads: 3 })
    const server = await pod()
    await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    for (let count = 0; count < 30; count++) expect(await ask(ip, port)).toBe('pod')
    await until('all are counted', () => traffic()?.connections === 30 && traffic()?.active === 0)
    expect(await backend.held({ kind: 'clusterIP', family: 'IPv4', protocol: 'tcp', address: ip, port })).toMatchObject(
      {
        inside: [`${podIp}:${server.port}`],
        connections: 30,
      },
    )

    const other = await start({ spliceThreads: 3 })
    await other.cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    expect([...other.backend.observations.failures().values()]).toEqual([
      `${ip}:${port}/tcp is in use by another program; stop it, or give the service another port.`,
    ])
    await cluster.set('web', undefined)
    expect(await outcome(ip, port)).toBe('ECONNREFUSED')
    await other.cluster.fullSync()
    expect(await outcome(ip, port)).toBe('pod')
  })

  it('keep a client at its endpoint, if its Service says so', async () => {
    const { cluster, backend } = await start({ spliceThreads: 3 })
    const pods = await Promise.all(['a', 'b', 'c'].map((name) => pod(undefined, name)))
    const endpoints = pods.map((server) => endpoint(podIp, server.port))
    // Session affinity is added while the address is open.
    await cluster.set('web', { ips }, endpoints)
    await cluster.set('web', { ips, sessionAffinity }, endpoints)
    const answers = new Map<string, Set<string>>()
    for (const client of clients) {
      const heard = new Set<string>()
      for (let count = 0; count < 6; count++) heard.add(await ask(ip, port, '', client))
      answers.set(client, heard)
    }
    expect([...answers.values()].map(({ size }) => size)).toEqual(clients.map(() => 1))
    expect(new Set([...answers.values()].flatMap((heard) => [...heard])).size).toBeGreaterThan(1)
    const held = await backend.held({ kind: 'clusterIP', family: 'IPv4', protocol: 'tcp', address: ip, port })
    expect(held?.sessionAffinity?.map(({ client }) => client).sort()).toEqual(clients)
  })
})
