import { once } from 'node:events'
import { connect as connectHttp2, constants, type IncomingHttpHeaders } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import type { Call } from './call.js'
import { frame } from './frames.js'
import { CallRate, limitsOf } from './limits.js'
import { listen } from './server.js'
import { Status } from './status.js'
import { FrameType, RawHttp2 } from './testing/raw-http2.js'
import { afterTest, connect, KeptLog, startServer, statusOf } from './testing/server.js'

const untilOver = (call: Call) => new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve()))
const answer = async (call: Call) => {
  await call.nextRequest()
  await call.write(frame(Buffer.from('ok')))
}

async function ask(port: number, headers: Record<string, string>): Promise<IncomingHttpHeaders & { body?: string }> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  afterTest(() => session.destroy())
  const request = session.request({ ':path': '/t/Answer', ...headers })
  request.end()
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [response] = await once(request, 'response')
  await once(request, 'close')
  return { ...response, body: Buffer.concat(chunks).toString() }
}

describe('what does not fit', () => {
  const grpc = { ':method': 'POST', 'content-type': 'application/grpc' }

  it('is answered in HTTP when it is not gRPC', async () => {
    const server = await startServer({ '/t/Answer': answer })
    const wrongType = await ask(server.port, { ...grpc, 'content-type': 'application/json' })
    expect(wrongType).toMatchObject({ ':status': 415, body: expect.stringContaining('application/grpc') })
    expect(await ask(server.port, { ...grpc, ':method': 'GET' })).toMatchObject({ ':status': 405, allow: 'POST' })
  })

  it('is answered with headers only when the call cannot begin', async () => {
    const server = await startServer({ '/t/Answer': answer })
    const unknown = await ask(server.port, { ...grpc, ':path': '/t/Nothing' })
    expect(unknown).toMatchObject({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12', body: '' })
    const compressed = await ask(server.port, { ...grpc, 'grpc-encoding': 'gzip' })
    expect(compressed).toMatchObject({ 'grpc-status': '12', 'grpc-accept-encoding': 'identity' })
    expect(await ask(server.port, { ...grpc, 'grpc-timeout': 'x' })).toMatchObject({ 'grpc-status': '3' })
    expect(server.stats.callsStarted).toBe(0)
  })

  it('is UNIMPLEMENTED for a grpc-js client', async () => {
    const server = await startServer({})
    await expect(connect(server.target).unary('/no.Such/Method', Buffer.alloc(0))).rejects.toMatchObject({
      code: Status.UNIMPLEMENTED,
      details: 'This server has no method /no.Such/Method',
    })
  })
})

describe('a client that sends what grpc-go sends', () => {
  it('gets headers, messages, trailers, and an answer to its pings', async () => {
    const server = await startServer({ '/t/Answer': answer })
    const client = new RawHttp2(server.port).begin()
    client.send(FrameType.WINDOW_UPDATE, 0, 0, Buffer.from([0, 15, 0, 1]))
    client.startCall(1, '/t/Answer').send(FrameType.DATA, 1, 1, frame(Buffer.alloc(3)))
    client.send(FrameType.PING, 0, 0, Buffer.from('bdp-ping'))
    const ofCall = () => client.frames.filter(({ stream }) => stream === 1)
    await until('the trailers', () => ofCall().length === 3)
    const [endStream, endHeaders] = [1, 4]
    expect(ofCall()).toMatchObject([
      { type: FrameType.HEADERS, flags: endHeaders },
      { type: FrameType.DATA, flags: 0, payload: Buffer.from('00000000026f6b', 'hex') },
      { type: FrameType.HEADERS, flags: endHeaders | endStream },
    ])
    await until('the ping', () => client.has(FrameType.PING, 0))
    expect(client.frames.find(({ type }) => type === FrameType.PING)).toMatchObject({ flags: 1 })
  })

  it('and resets its calls at once does no harm', async () => {
    const server = await startServer({ '/t/Answer': answer, '/t/Wait': untilOver })
    const client = new RawHttp2(server.port).begin()
    client.socket.cork()
    for (let n = 0; n < 100; n++) {
      client.startCall(2 * n + 1, ['/t/Answer', '/t/Wait', '/t/Nothing'][n % 3] ?? '')
      client.send(FrameType.RST_STREAM, 0, 2 * n + 1, Buffer.from([0, 0, 0, 8]))
    }
    client.socket.uncork()
    client.startCall(1001, '/t/Answer').send(FrameType.DATA, 1, 1001, frame(Buffer.alloc(0)))
    await until('the last one is answered', () => client.has(FrameType.DATA, 1001))
    await until('no call is left', () => server.stats.calls === 0)
    expect(server.log.lines.filter((line) => /^[EW]/.test(line))).toEqual([])
  })
})

describe('a client that does not read', () => {
  it('costs bounded memory, and the others are served meanwhile', async () => {
    const message = frame(Buffer.alloc(8000, 7))
    const before = Buffer.from(message)
    let accepted = 0
    const flood = async (call: Call) => {
      for (;;) {
        await call.write(message)
        accepted += message.length
      }
    }
    const server = await startServer({ '/t/Flood': flood, '/t/Answer': answer })
    const stalled = connectHttp2(`http://127.0.0.1:${server.port}`)
    afterTest(() => stalled.destroy())
    const request = stalled.request({ ':method': 'POST', ':path': '/t/Flood', 'content-type': 'application/grpc' })
    request.on('error', () => {})
    await once(request, 'response')
    const other = connect(server.target)
    for (let n = 0; n < 50; n++) expect(await other.unary('/t/Answer', Buffer.alloc(0))).toEqual(Buffer.from('ok'))
    await new Promise((resolve) => setTimeout(resolve, 200))
    const whileStalled = accepted
    expect(whileStalled).toBeGreaterThan(0)
    expect(whileStalled).toBeLessThan(256 * 1024)

    request.resume()
    await until('it goes on when the client reads again', () => accepted > whileStalled + 2_000_000)
    expect(message.equals(before)).toBe(true)
  })

  it('at all is cut off by the keepalive', async () => {
    let over = 0
    const flood = async (call: Call) => {
      call.signal.addEventListener('abort', () => over++)
      for (;;) await call.write(frame(Buffer.alloc(8000)))
    }
    const server = await startServer({ '/t/Flood': flood }, { keepalive: { intervalMs: 30, ackTimeoutMs: 60 } })
    const session = connectHttp2(`http://127.0.0.1:${server.port}`)
    session.on('error', () => {})
    afterTest(() => session.destroy())
    const request = session.request({ ':method': 'POST', ':path': '/t/Flood', 'content-type': 'application/grpc' })
    request.on('error', () => {})
    await once(request, 'response')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(over, 'its HTTP/2 still answers pings').toBe(0)
    const silent = new RawHttp2(server.port).begin().startCall(1, '/t/Flood')
    await until('the silent one is cut off', () => over === 1)
    expect(server.stats.faults.dead).toBe(1)
    expect(server.log.lines.join('\n')).toMatch(/answers no more pings peer="127\.0\.0\.1:\d+"/)
    await until('its socket is closed', () => silent.closed)
    expect(silent.has(FrameType.PING, 0)).toBe(true)
    expect(server.stats).toMatchObject({ connections: 1, calls: 1 })
  })

  it('is not cut off while it sends something', async () => {
    const server = await startServer({}, { keepalive: { intervalMs: 20, ackTimeoutMs: 50 } })
    const client = new RawHttp2(server.port).begin()
    const windowUpdate = Buffer.from([0, 0, 0, 1])
    const busy = setInterval(() => client.send(FrameType.WINDOW_UPDATE, 0, 0, windowUpdate), 10)
    await new Promise((resolve) => setTimeout(resolve, 250))
    clearInterval(busy)
    expect(server.stats.faults.dead).toBe(0)
    await until('silence ends it', () => client.closed)
  })
})

describe('limits', () => {
  it('hold calls on one connection', async () => {
    const server = await startServer({ '/t/Wait': untilOver }, { limits: { maxStreamsPerConnection: 2 } })
    const client = connect(server.target)
    for (let n = 0; n < 5; n++) client.stream('/t/Wait')
    await until('two calls', () => server.stats.calls === 2)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(server.stats).toMatchObject({ calls: 2, callsStarted: 2, connections: 1 })
  })

  it('let a hundred calls on one connection wait side by side by default', async () => {
    const server = await startServer(
      { '/t/Wait': untilOver, '/t/Answer': answer },
      { limits: { maxSessionMemoryMiB: 1 } },
    )
    const client = connect(server.target)
    for (let n = 0; n < 99; n++) client.stream('/t/Wait')
    await until('99 calls', () => server.stats.calls === 99)
    expect(await client.unary('/t/Answer', Buffer.alloc(0))).toEqual(Buffer.from('ok'))
  })

  it('hold connections, and the log says so once', async () => {
    const server = await startServer(
      { '/t/Wait': untilOver },
      { limits: { maxConnections: 2, maxConnectionsPerPeer: 2 } },
    )
    const clients = [new RawHttp2(server.port).begin(), new RawHttp2(server.port).begin()]
    await until('two connections', () => server.stats.connections === 2)
    const turnedAway = [new RawHttp2(server.port), new RawHttp2(server.port)]
    await until('the others are closed', () => turnedAway.every((client) => client.closed))
    expect(server.stats.faults.full).toBe(2)
    const warnings = server.log.lines.filter((line) => line.startsWith('W '))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/as many as it takes.*peer="127\.0\.0\.1:\d+" connections=2/)
    clients[0]?.socket.destroy()
    await until('there is room again', () => server.stats.connections === 1)
    expect(new RawHttp2(server.port).begin().closed).toBe(false)
  })

  it('hold the connections of one peer, and others still come in', async () => {
    const server = await startServer({ '/t/Wait': untilOver }, { limits: { maxConnectionsPerPeer: 2 } })
    const crowd = [new RawHttp2(server.port).begin(), new RawHttp2(server.port).begin()]
    await until('two connections', () => server.stats.connections === 2)
    const third = new RawHttp2(server.port)
    await until('the third is closed', () => third.closed)
    const other = connectTcp({ host: '127.0.0.1', port: server.port, localAddress: '127.0.0.2' })
    afterTest(() => other.destroy())
    await until('another peer is let in', () => server.stats.connections === 3)
    expect(server.stats.faults).toMatchObject({ crowd: 1, full: 0 })
    expect(server.log.lines.filter((line) => line.startsWith('W '))).toEqual([
      expect.stringMatching(
        /its address has as many as one client may have.*--max-connections-per-client.*peer="127\.0\.0\.1:\d+" connections=2/,
      ),
    ])
    crowd[0]?.socket.destroy()
    await until('it has room again', () => server.stats.connections === 2)
    expect(new RawHttp2(server.port).begin().closed).toBe(false)
    await until('it is let in', () => server.stats.connections === 3)
  })

  it('are those of the machine: the limit of open files, less a reserve', () => {
    expect(limitsOf({}, 1_000_000)).toMatchObject({ maxConnections: 20_000, maxConnectionsPerPeer: 2000 })
    expect(limitsOf({}, 1024)).toMatchObject({ maxConnections: 768, maxConnectionsPerPeer: 192 })
    expect(limitsOf({}, 64)).toMatchObject({ maxConnections: 32, maxConnectionsPerPeer: 8 })
    expect(limitsOf({ maxConnections: 3 }, 64)).toMatchObject({ maxConnections: 3, maxConnectionsPerPeer: 1 })
  })

  it('close a connection that opens and resets calls in a loop, and nobody else', async () => {
    const limits = { callsPerSecond: 1, callBurst: 200 }
    const server = await startServer({ '/t/Wait': untilOver, '/t/Answer': answer }, { limits })
    const other = connect(server.target)
    expect(await other.unary('/t/Answer', Buffer.alloc(0))).toEqual(Buffer.from('ok'))
    const session = connectHttp2(`http://127.0.0.1:${server.port}`)
    afterTest(() => session.destroy())
    session.on('error', () => {})
    let goaway: number | undefined
    session.on('goaway', (code) => {
      goaway = code
    })
    await once(session, 'connect')
    const peer = `127.0.0.1:${session.socket.localPort}`
    const headers = { ':method': 'POST', ':path': '/t/Wait', 'content-type': 'application/grpc' }
    await until('it is told to calm down', () => {
      for (let n = 0; n < 20 && !session.destroyed && !session.closed; n++) {
        session
          .request(headers)
          .on('error', () => {})
          .close(constants.NGHTTP2_CANCEL)
      }
      return goaway !== undefined
    })
    expect(goaway).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    await until('it is closed', () => session.destroyed && server.stats.connections === 1)
    expect(server.stats.faults.flood).toBe(1)
    const warnings = server.log.lines.filter((line) => line.startsWith('W '))
    expect(warnings).toEqual([expect.stringMatching(`too many calls.*peer="${peer}"`)])
    expect(await other.unary('/t/Answer', Buffer.alloc(0))).toEqual(Buffer.from('ok'))
    await until('no call is left', () => server.stats.calls === 0)
  })

  it('count calls that are opened and reset in one packet', async () => {
    const server = await startServer({ '/t/Wait': untilOver }, { limits: { callsPerSecond: 1, callBurst: 50 } })
    const client = new RawHttp2(server.port).begin()
    client.socket.cork()
    for (let n = 0; n < 100; n++) {
      client.startCall(2 * n + 1, '/t/Wait')
      client.send(FrameType.RST_STREAM, 0, 2 * n + 1, Buffer.from([0, 0, 0, 8]))
    }
    client.socket.uncork()
    await until('it is closed', () => client.closed)
    const goaway = client.frames.find(({ type }) => type === FrameType.GOAWAY)
    expect(goaway?.payload.readUInt32BE(4)).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect(server.stats.faults.flood).toBe(1)
  })

  it('let calls come back with time', () => {
    let nowMs = 0
    const rate = new CallRate({ callsPerSecond: 2, callBurst: 3 }, () => nowMs)
    const taken = () => [1, 2, 3, 4].map(() => rate.take())
    expect(taken()).toEqual([true, true, true, false])
    nowMs = 1000
    expect(taken()).toEqual([true, true, false, false])
    nowMs = 60_000
    expect(taken()).toEqual([true, true, true, false])
  })

  it('close a connection that never makes a call, and none that has made one', async () => {
    const server = await startServer({ '/t/Answer': answer }, { limits: { firstCallTimeoutMs: 80 } })
    const used = new RawHttp2(server.port).begin()
    used.startCall(1, '/t/Answer').send(FrameType.DATA, 1, 1, frame(Buffer.alloc(0)))
    await until('the answer', () => used.has(FrameType.DATA, 1))
    const idle = new RawHttp2(server.port).begin()
    await until('the idle one is closed', () => idle.closed)
    expect(server.stats.faults.slow).toBe(1)
    expect(used.closed).toBe(false)
  })

  it('hold headers', async () => {
    const server = await startServer({ '/t/Answer': answer }, { limits: { maxHeaderBytes: 2000 } })
    const session = connectHttp2(`http://127.0.0.1:${server.port}`)
    afterTest(() => session.destroy())
    // The limit holds from the client's answer to SETTINGS on.
    await once(session, 'remoteSettings')
    await new Promise((resolve) => session.ping(resolve))
    const request = session.request({
      ':method': 'POST',
      ':path': '/t/Answer',
      'content-type': 'application/grpc',
      big: 'x'.repeat(3000),
    })
    request.on('error', () => {})
    request.resume()
    await new Promise((resolve) => request.on('close', resolve))
    expect(request.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect(server.stats.callsStarted).toBe(0)
  })
})

describe('garbage on the port', () => {
  const kinds: Record<string, Buffer | string> = {
    'an HTTP/1 request': 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
    'random bytes': Buffer.from(Array.from({ length: 400 }, (_, n) => (n * 89) % 256)),
    'a TLS client': Buffer.from('16030100c8010000c40303', 'hex'),
  }
  for (const [kind, bytes] of Object.entries(kinds)) {
    it(`is closed, counted and logged with its address: ${kind}`, async () => {
      const server = await startServer({ '/t/Answer': answer })
      const socket = connectTcp(server.port, '127.0.0.1', () => socket.write(bytes))
      socket.on('error', () => {})
      socket.resume()
      await once(socket, 'connect')
      const peer = `127.0.0.1:${socket.localPort}`
      await once(socket, 'close')
      await until('it is counted', () => server.stats.faults.protocol === 1)
      expect(server.log.lines.filter((line) => line.startsWith('W ')).join('\n')).toContain(`peer="${peer}"`)
      await until('nothing is left', () => server.stats.connections === 0)
      expect(await connect(server.target).unary('/t/Answer', Buffer.alloc(0))).toEqual(Buffer.from('ok'))
    })
  }

  it('after a good start is closed by the keepalive, also when it does not stop', async () => {
    const server = await startServer({}, { keepalive: { intervalMs: 20, ackTimeoutMs: 20 } })
    const nonsense = Buffer.from('ffffff0101ffffffffdead', 'hex')
    const once = new RawHttp2(server.port).begin()
    const always = new RawHttp2(server.port).begin()
    once.socket.write(nonsense)
    const more = setInterval(() => always.socket.write(nonsense), 5)
    afterTest(() => clearInterval(more))
    await until('both are closed', () => once.closed && always.closed)
    expect(server.stats.faults.dead + server.stats.faults.protocol).toBe(2)
  })

  it('warns once, not for every connection', async () => {
    const server = await startServer({})
    for (let n = 0; n < 5; n++)
      connectTcp(server.port, '127.0.0.1')
        .on('error', () => {})
        .resume()
        .end('GET / HTTP/1.1\r\n\r\n')
    await until('all are counted', () => server.stats.faults.protocol === 5)
    expect(server.log.lines.filter((line) => line.startsWith('W '))).toHaveLength(1)
    expect(server.log.lines.filter((line) => line.startsWith('1 '))).toHaveLength(4)
  })

  it('that says nothing is closed after the set-up time', async () => {
    const server = await startServer({}, { limits: { setupTimeoutMs: 80 } })
    const start = performance.now()
    const silent = new RawHttp2(server.port)
    const partial = new RawHttp2(server.port)
    partial.socket.write('PRI * HTTP/2.0\r\n')
    const fine = new RawHttp2(server.port).begin()
    await until('both are closed', () => silent.closed && partial.closed)
    expect(performance.now() - start).toBeGreaterThan(70)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(server.stats.faults.slow).toBe(2)
    expect(fine.closed).toBe(false)
  })

  it('that connects and goes, as load balancers do, is nothing to speak of', async () => {
    const server = await startServer({})
    const probe = connectTcp(server.port, '127.0.0.1', () => probe.destroy())
    await until('it came and went', () => server.stats.connectionsAccepted === 1 && server.stats.connections === 0)
    expect(server.log.lines.filter((line) => /^[EW1]/.test(line))).toEqual([])
  })
})

describe('close', () => {
  it('ends calls with UNAVAILABLE, sends GOAWAY and is done before the grace time', async () => {
    let reason: unknown
    const server = await startServer({
      '/t/Wait': async (call) => {
        await untilOver(call)
        reason = call.signal.reason
      },
    })
    const call = connect(server.target).stream('/t/Wait')
    call.resume()
    await once(call, 'metadata')
    const raw = new RawHttp2(server.port).begin()
    await until('both are there', () => server.stats.connections === 2 && raw.frames.length > 1)
    const ended = statusOf(call)
    const start = performance.now()
    const closed = server.close(5000)
    expect(await ended).toMatchObject({
      code: Status.UNAVAILABLE,
      details: expect.stringContaining('server is stopping'),
    })
    expect(reason).toMatchObject({ code: Status.UNAVAILABLE })
    await until('GOAWAY', () => raw.has(FrameType.GOAWAY, 0))
    await closed
    expect(performance.now() - start).toBeLessThan(4000)
    expect(server.stats).toMatchObject({ connections: 0, calls: 0 })
    await expect(connect(server.target).unary('/t/Wait', Buffer.alloc(0))).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
    })
  })

  it('destroys after the grace time what does not go by itself', async () => {
    const flood = async (call: Call) => {
      for (;;) await call.write(frame(Buffer.alloc(50_000)))
    }
    const server = await startServer({ '/t/Flood': flood })
    const stalled = new RawHttp2(server.port).begin().startCall(1, '/t/Flood')
    const silent = new RawHttp2(server.port)
    await until('both are there', () => stalled.has(FrameType.HEADERS, 1) && server.stats.connections === 2)
    const start = performance.now()
    await Promise.all([server.close(100), server.close(100)])
    expect(performance.now() - start).toBeGreaterThan(90)
    await until('both are closed', () => stalled.closed && silent.closed)
    expect(server.stats).toMatchObject({ connections: 0, calls: 0 })
  })

  it('lets the address be used again at once', async () => {
    const first = await startServer({})
    await first.close(100)
    const again = await listen({ address: first.address, handlers: new Map(), log: new KeptLog() })
    await again.close(0)
    expect(again.address).toBe(first.address)
  })
})
