import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { portableByteMover } from './portable-mover.js'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** A client's socket and the one that the mover is given, and the same on the endpoint's side. */
async function pair(mover = portableByteMover()) {
  const connected = async (options: object, dial: (port: number) => Socket) => {
    const server = createServer({ allowHalfOpen: true, ...options }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const out = dial((server.address() as AddressInfo).port)
    out.on('error', () => {})
    const [into] = (await once(server, 'connection')) as [Socket]
    into.on('error', () => {})
    if (out.connecting) await once(out, 'connect')
    closers.push(() => {
      server.close()
      out.destroy()
      into.destroy()
    })
    return [out, into] as const
  }
  const [client, inside] = await connected({ pauseOnConnect: true }, (port) =>
    connect({ port, host: '127.0.0.1', allowHalfOpen: true }),
  )
  const [outside, server] = await connected({}, (port) => mover.connect({ ip: '127.0.0.1', port, key: '' }))
  const counters = { bytesToEndpoint: 0, bytesToClient: 0 }
  const pair = { client: inside, endpoint: outside, counters, moved: { toEndpoint: 0, toClient: 0 } }
  const moved = new Promise((resolve) => mover.move(pair, resolve))
  return { client, server, counters, moved, mover }
}

/** Bytes that differ everywhere, so that a buffer used twice would show. */
const bytes = (length: number, seed: number) => {
  const data = Buffer.alloc(length)
  for (let i = 0; i + 4 <= length; i += 4) data.writeUInt32LE((i * 2_654_435_761 + seed) >>> 0, i)
  return data
}
const hashOf = (data: Buffer) => createHash('sha1').update(data).digest('hex')

async function received(socket: Socket, pauses: boolean): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    // A reader that is slow now and then makes writes wait, which is where a shared buffer could be overwritten.
    if (pauses && chunks.length % 7 === 0) {
      socket.pause()
      setTimeout(() => socket.resume(), 3)
    }
  })
  await once(socket, 'end')
  return Buffer.concat(chunks)
}

describe('the portable byte mover', () => {
  it('many downloads at once, some to slow readers: every byte arrives as it was sent', async () => {
    const mover = portableByteMover()
    const downloads = Array.from({ length: 8 }, async (_, seed) => {
      const { client, server } = await pair(mover)
      const sent = bytes(6_000_000, seed)
      server.end(sent)
      const got = await received(client, seed % 2 === 0)
      expect([got.length, hashOf(got)]).toEqual([sent.length, hashOf(sent)])
    })
    await Promise.all(downloads)
  })

  it('both directions at once, then half-close from each side', async () => {
    const { client, server, moved, counters } = await pair()
    const [up, down] = [bytes(3_000_000, 1), bytes(2_000_000, 2)]
    const [atServer, atClient] = [received(server, true), received(client, false)]
    client.end(up)
    server.write(down)
    expect(hashOf(await atServer)).toBe(hashOf(up))
    // The client's side has ended; the other one still talks.
    server.end('goodbye')
    expect(hashOf(await atClient)).toBe(hashOf(Buffer.concat([down, Buffer.from('goodbye')])))
    expect(await moved).toEqual({ toEndpoint: up.length, toClient: down.length + 7 })
    expect(counters).toEqual({ bytesToEndpoint: up.length, bytesToClient: down.length + 7 })
  })

  it('nothing that an endpoint says first is lost', async () => {
    const { client, server } = await pair()
    server.end('welcome')
    expect((await received(client, false)).toString()).toBe('welcome')
  })

  it.each(['client', 'server'] as const)('a reset by the %s reaches the other', async (who) => {
    const sides = await pair()
    sides.client.resume()
    sides.server.resume()
    const other = who === 'client' ? sides.server : sides.client
    const code = new Promise((resolve) => other.once('error', (error: NodeJS.ErrnoException) => resolve(error.code)))
    sides.client.write('x')
    await until('the byte has arrived', () => sides.counters.bytesToEndpoint === 1)
    sides[who].resetAndDestroy()
    expect(await code).toBe('ECONNRESET')
    await sides.moved
  })
})
