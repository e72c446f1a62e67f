import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { userspaceBackend } from '../backend.js'
import type { UserspaceOptions } from '../options.js'
import { Cluster, endpoint } from '../testing/cluster.js'
import { tcpServer } from '../testing/peers.js'
import { portableByteMover } from './portable-mover.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const [ip, port] = ['127.40.0.1', 8080]

/** A client whose endpoint does not read, and the socket that the proxy has to that endpoint. */
async function start(serve: (socket: Socket) => void, options: UserspaceOptions = {}) {
  const mover = portableByteMover()
  const toEndpoints: Socket[] = []
  const byteMover = {
    ...mover,
    connect: (address: Parameters<typeof mover.connect>[0]) => {
      const socket = mover.connect(address)
      toEndpoints.push(socket)
      return socket
    },
  }
  const backend = userspaceBackend({ allowLoopback: true, syncPeriodMs: 0, byteMover, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  const cluster = new Cluster(backend)
  const server = await tcpServer('127.20.0.1', 'pod', { serve })
  closers.push(() => server.close())
  await cluster.set('web', {}, [endpoint('127.20.0.1', server.port)])
  const client = connect({ host: ip, port, allowHalfOpen: true })
  client.on('error', () => {})
  closers.push(() => client.destroy())
  await until('the proxy is connected to the endpoint', () => toEndpoints[0]?.connecting === false)
  const traffic = () => backend.observations.traffic.get('default/web:http')
  return { backend, cluster, client, toEndpoint: toEndpoints[0] as Socket, traffic }
}

const ended = ({ traffic }: Awaited<ReturnType<typeof start>>) =>
  until('the connection is over', () => traffic()?.active === 0, 30_000)

/** Sends until bytes wait in the proxy, but fewer than would make it stop reading the client. */
async function fillEndpoint({ client, toEndpoint, traffic }: Awaited<ReturnType<typeof start>>): Promise<void> {
  for (let sent = 0; toEndpoint.writableLength === 0; ) {
    const chunk = Buffer.alloc(12_000)
    client.write(chunk)
    sent += chunk.length
    while (traffic()?.bytesToEndpoint !== sent) await turn()
  }
}

/** Whether a count has grown, and then not for a while. */
function standsStill(count: () => number): () => boolean {
  let [last, since] = [0, 0]
  return () => {
    if (count() !== last) [last, since] = [count(), Date.now()]
    return last > 0 && Date.now() - since > 300
  }
}

const neverReads = (socket: Socket) => void socket.pause()

describe('a client that has ended its side, and an endpoint that does not read', () => {
  it('ends with its Service', async () => {
    const all = await start(neverReads, { drainSeconds: 0 })
    await fillEndpoint(all)
    all.client.end()
    await until('the proxy has passed the end on', () => all.toEndpoint.writableEnded)
    await all.cluster.set('web', undefined)
    await until('both sides are closed', () => all.client.closed && all.toEndpoint.closed, 30_000)
  })

  it('ends with the proxy, also if the endpoint has ended its side too', async () => {
    const all = await start((socket) => void socket.pause().end('early answer'))
    await fillEndpoint(all)
    all.client.resume().end()
    await until('the client is done', () => all.client.closed, 30_000)
    expect(all.traffic()?.active).toBe(1)
    await all.backend.close()
    await ended(all)
    expect(all.toEndpoint.destroyed).toBe(true)
  })
})

describe('a reset is noticed', () => {
  it('from a client whose endpoint does not read', async () => {
    const all = await start(neverReads)
    all.client.write(Buffer.alloc(64e6))
    await until('the proxy has stopped reading', () => all.toEndpoint.writableNeedDrain, 30_000)
    all.client.resetAndDestroy()
    await ended(all)
  })

  it('from a client that has ended its side and waits for an answer', async () => {
    const all = await start((socket) => void socket.resume())
    all.client.end('question')
    await until('the proxy has passed the end on', () => all.toEndpoint.writableEnded)
    all.client.resetAndDestroy()
    await ended(all)
  })

  it('from an endpoint whose client does not read', async () => {
    let atEndpoint: Socket | undefined
    const all = await start((socket) => {
      atEndpoint = socket
      socket.write(Buffer.alloc(64e6))
    })
    all.client.pause()
    await until(
      'the proxy has stopped reading',
      standsStill(() => all.traffic()?.bytesToClient ?? 0),
      30_000,
    )
    atEndpoint?.resetAndDestroy()
    await ended(all)
  })
})
