import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  connectTcp,
  Direction,
  errorOf,
  keepClientsTogether,
  listenTcp,
  loadTcp,
  localAddress,
  Pipes,
  remoteAddress,
  resetAndClose,
  SOCK_NONBLOCK,
  type TcpSyscalls,
} from './index.js'
import { mostUnsentBytes } from './sockets.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.runIf(process.platform === 'linux')('sockets', () => {
  let calls: TcpSyscalls
  beforeAll(async () => {
    calls = await loadTcp()
  })

  function listen(ip: string, port: number, sockets: number) {
    const listening = listenTcp(calls, { ip, port }, { sockets, backlog: 100 })
    closers.push(() => listening.fds.map((fd) => calls.close(fd)))
    return listening
  }

  /** Who accepts one connection. -1: nobody. */
  function accept(fds: readonly number[]): { socket: number; client: string } {
    const address = new Uint8Array(28)
    for (const [socket, fd] of fds.entries()) {
      const client = calls.accept4(fd, address, Uint8Array.of(28, 0, 0, 0), SOCK_NONBLOCK)
      if (client < 0) continue
      const { ip } = remoteAddress(calls, client)
      calls.close(client)
      return { socket, client: ip }
    }
    return { socket: -1, client: '' }
  }

  async function connected(host: string, port: number, localAddress: string): Promise<void> {
    const socket = connect({ host, port, localAddress })
    closers.push(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
  }

  it.each(['127.0.0.1', '::1'])('share an address with each other at %s, and with nobody else', (ip) => {
    const { address } = listen(ip, 0, 3)
    expect(address).toEqual({ ip, port: expect.any(Number) })
    expect(address.port).toBeGreaterThan(0)
    const inUse = { code: 'EADDRINUSE', address: ip, port: address.port }
    for (const sockets of [1, 3])
      expect(() => listen(ip, address.port, sockets)).toThrow(expect.objectContaining(inUse))
  })

  it('an address that is not of this machine is an error as in Node', () => {
    expect(() => listen('192.0.2.1', 80, 1)).toThrow(
      expect.objectContaining({ code: 'EADDRNOTAVAIL', message: 'bind EADDRNOTAVAIL 192.0.2.1:80' }),
    )
  })

  it('all connections of a client come to one of them, if that is wanted', async () => {
    const { fds, address } = listen('127.0.0.1', 0, 3)
    const socketsOf = async (client: string) => {
      const found = new Set<number>()
      for (let count = 0; count < 12; count++) {
        await connected('127.0.0.1', address.port, client)
        found.add(accept(fds).socket)
      }
      return [...found]
    }
    keepClientsTogether(calls, fds[0] as number, 'IPv4', 3, true)
    const sockets = [await socketsOf('127.0.0.2'), await socketsOf('127.0.0.3'), await socketsOf('127.0.0.4')]
    expect(sockets.flat().sort()).toEqual([0, 1, 2])
    keepClientsTogether(calls, fds[0] as number, 'IPv4', 3, false)
    expect((await socketsOf('127.0.0.2')).length).toBeGreaterThan(1)
  })

  it('keep few bytes for a peer that does not read, on both ends of a connection', async () => {
    const [IPPROTO_TCP, TCP_INFO, notSentAt, MSG_DONTWAIT] = [6, 11, 144, 0x40]
    const { fds, address } = listen('127.0.0.1', 0, 1)
    const client = connectTcp(calls, address)
    closers.push(() => calls.close(client))
    let server = -1
    for (let tries = 0; tries < 10_000 && server < 0; tries++) {
      server = calls.accept4(fds[0] as number, new Uint8Array(28), Uint8Array.of(28, 0, 0, 0), SOCK_NONBLOCK)
      await pause(1)
    }
    closers.push(() => calls.close(server))
    const piece = new Uint8Array(65_536)
    for (const fd of [client, server]) {
      while (calls.send(fd, piece, piece.length, MSG_DONTWAIT) > 0);
      const info = Buffer.alloc(256)
      expect(calls.getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, Uint8Array.of(0, 1, 0, 0))).toBe(0)
      const notSent = info.readUInt32LE(notSentAt)
      expect(notSent).toBeGreaterThan(0)
      expect(notSent).toBeLessThanOrEqual(mostUnsentBytes + piece.length)
    }
  })

  it('the error of a connection that was refused is known', async () => {
    const { fds, address } = listen('127.0.0.1', 0, 1)
    for (const fd of fds) calls.shutdown(fd, 2)
    const fd = connectTcp(calls, address)
    let errno = 0
    for (let tries = 0; tries < 1000 && errno === 0; tries++) {
      errno = errorOf(calls, fd)
      await pause(1)
    }
    calls.close(fd)
    expect(errno).toBe(111)
  })
})

describe.runIf(process.platform === 'linux')('a direction', () => {
  let calls: TcpSyscalls
  beforeAll(async () => {
    calls = await loadTcp()
  })

  /** A socket of Node, and its other end as a descriptor. */
  async function pair(): Promise<{ socket: Socket; fd: number }> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const fd = connectTcp(calls, { ip: '127.0.0.1', port: (server.address() as AddressInfo).port })
    const [socket] = await accepted
    socket.on('error', () => {})
    expect(localAddress(calls, fd).port).toBe(socket.remotePort)
    closers.push(() => {
      server.close()
      socket.destroy()
    })
    return { socket, fd }
  }

  let files = 0
  beforeEach(() => {
    files = 0
  })
  const count = (opened: number) => {
    files += opened
  }

  /** Pipes that can never be opened, as when the process has no file descriptors left. */
  class NoPipes extends Pipes {
    override take(): undefined {}
  }

  describe.each([
    ['through pipes', Pipes],
    ['without pipes', NoPipes],
  ])('%s', (_, PipesClass) => {
    it('moves every byte and the end, and holds nothing then', async () => {
      const [from, to] = [await pair(), await pair()]
      const pipes = new PipesClass(calls, count)
      const direction = new Direction(from.fd, to.fd)
      // More than the kernel keeps for sockets that are not read.
      const sent = Buffer.alloc(24_000_000)
      for (let at = 0; at < sent.length; at += 4) sent.writeUInt32LE((at * 2_654_435_761) >>> 0, at)
      from.socket.end(sent)
      const chunks: Buffer[] = []
      let wasFull = false
      to.socket.on('data', (chunk) => chunks.push(chunk))
      const ended = once(to.socket, 'end')
      to.socket.pause()
      // The reader begins when the other socket is full.
      for (let tries = 0; tries < 10_000 && !direction.hasEnded; tries++) {
        direction.pump(pipes)
        if (direction.isFull) {
          wasFull = true
          to.socket.resume()
        }
        await pause(1)
      }
      to.socket.resume()
      await ended
      expect([direction.moved, direction.failure, direction.hasEnded]).toEqual([sent.length, undefined, true])
      expect(wasFull).toBe(true)
      expect(Buffer.concat(chunks).equals(sent)).toBe(true)
      pipes.close()
      direction.close(pipes)
      for (const { fd } of [from, to]) calls.close(fd)
      expect(files).toBe(0)
    })

    it('says which end failed', async () => {
      const [from, to] = [await pair(), await pair()]
      const pipes = new PipesClass(calls, count)
      const direction = new Direction(from.fd, to.fd)
      from.socket.resetAndDestroy()
      for (let tries = 0; tries < 10_000 && !direction.failure; tries++) {
        direction.pump(pipes)
        await pause(1)
      }
      expect(direction.failure).toBe('read ECONNRESET')
      resetAndClose(calls, to.fd)
      calls.close(from.fd)
      pipes.close()
      expect(files).toBe(0)
    })
  })
})
