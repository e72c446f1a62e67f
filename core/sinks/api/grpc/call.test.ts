import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import type { Call } from './call.js'
import { frame } from './frames.js'
import { RpcError, Status } from './status.js'
import { FrameType, RawHttp2 } from './testing/raw-http2.js'
import { afterTest, connect, startServer, statusOf } from './testing/server.js'

const echo = async (call: Call) => {
  for (let request = await call.nextRequest(); request; request = await call.nextRequest()) {
    await call.write(frame(request))
  }
}

const untilOver = (call: Call) => new Promise<void>((resolve) => call.signal.addEventListener('abort', () => resolve()))

const grpcHeaders = (path: string, more = {}) => ({
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
  ...more,
})

function connectRaw(port: number) {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  afterTest(() => session.destroy())
  return session
}

describe('a call', () => {
  it('carries messages both ways and ends well after the half-close', async () => {
    const server = await startServer({ '/t/Echo': echo }, { limits: { maxRequestBytes: 1_000_000 } })
    const call = connect(server.target).stream('/t/Echo')
    const received: string[] = []
    call.on('data', (message: Buffer) => received.push(message.toString()))
    const big = 'x'.repeat(300_000)
    for (const text of ['one', '', big]) call.write(Buffer.from(text))
    call.end()
    expect(await statusOf(call)).toMatchObject({ code: Status.OK })
    expect(received).toEqual(['one', '', big])
    await until('the call is gone', () => server.stats.calls === 0)
    expect(server.stats.callsStarted).toBe(1)
  })

  it('serves unary clients', async () => {
    const server = await startServer({ '/t/Echo': echo })
    expect(await connect(server.target).unary('/t/Echo', Buffer.from('hello'))).toEqual(Buffer.from('hello'))
  })

  it('sends its headers before the first message', async () => {
    const server = await startServer({ '/t/Wait': untilOver })
    const call = connect(server.target).stream('/t/Wait')
    const [metadata] = await once(call, 'metadata')
    expect(metadata.get('content-type')).toEqual(['application/grpc'])
    call.cancel()
  })

  it('tells path and peer', async () => {
    let seen: Call | undefined
    const server = await startServer({
      '/t/See': async (call) => {
        seen = call
      },
    })
    const call = connect(server.target).stream('/t/See')
    call.resume()
    await statusOf(call)
    expect(seen).toMatchObject({ path: '/t/See' })
    expect(seen?.peer.address).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(seen?.peer.subject).toBeUndefined()
  })

  it('ends with the status of an RpcError, also after messages', async () => {
    const server = await startServer({
      '/t/Fail': async (call) => {
        await call.write(frame(Buffer.from('first')))
        throw new RpcError(Status.FAILED_PRECONDITION, 'not yet: 50% of the state is there – wait')
      },
    })
    const call = connect(server.target).stream('/t/Fail')
    const received: Buffer[] = []
    call.on('data', (message: Buffer) => received.push(message))
    expect(await statusOf(call)).toMatchObject({
      code: Status.FAILED_PRECONDITION,
      details: 'not yet: 50% of the state is there – wait',
    })
    expect(received).toEqual([Buffer.from('first')])
    await until('the stream is gone although the client never half-closed', () => server.stats.calls === 0)
  })

  it('tells other errors to the log only', async () => {
    const server = await startServer({
      '/t/Bug': async () => {
        throw new Error('secret detail')
      },
    })
    const call = connect(server.target).stream('/t/Bug')
    call.resume()
    const status = await statusOf(call)
    expect(status.code).toBe(Status.INTERNAL)
    expect(status.details).not.toContain('secret')
    expect(server.log.lines.join('\n')).toMatch(/^E A call failed.*method="\/t\/Bug".*error="secret detail"/m)
  })

  it('honours grpc-timeout, whatever the handler does', async () => {
    let reason: unknown
    const server = await startServer({
      '/t/Hang': async (call) => {
        call.signal.addEventListener('abort', () => {
          reason = call.signal.reason
        })
        await new Promise(() => {})
      },
    })
    const request = connectRaw(server.port).request(grpcHeaders('/t/Hang', { 'grpc-timeout': '50m' }))
    request.resume()
    const [trailers] = await once(request, 'trailers')
    expect(trailers).toMatchObject({ 'grpc-status': '4', 'grpc-message': 'The deadline of 50 ms has passed' })
    expect(reason).toMatchObject({ code: Status.DEADLINE_EXCEEDED })
  })

  it('resets a stream that is over when the client neither reads nor finishes', async () => {
    const server = await startServer(
      {
        '/t/Flood': async (call) => {
          for (;;) await call.write(frame(Buffer.alloc(50_000)))
        },
      },
      { limits: { lingerMs: 30 } },
    )
    const request = connectRaw(server.port).request(grpcHeaders('/t/Flood', { 'grpc-timeout': '50m' }))
    request.on('error', () => {})
    request.pause()
    await until('the call has begun', () => server.stats.calls === 1)
    await until('the call is cut off', () => server.stats.calls === 0)
  })
})

describe('a call whose client goes', () => {
  const watched = () => {
    const seen = { aborts: [] as unknown[], ended: 0, errors: [] as unknown[] }
    const handler = async (call: Call) => {
      call.signal.addEventListener('abort', () => seen.aborts.push(call.signal.reason))
      try {
        await call.nextRequest()
        await call.nextRequest()
      } catch (error) {
        seen.errors.push(error)
        await expect(call.write(frame(Buffer.from('late')))).rejects.toBe(error)
        await expect(call.nextRequest()).rejects.toBe(error)
        seen.ended += 1
        throw error
      }
    }
    return { seen, handler }
  }

  const cases: Record<string, (port: number) => unknown> = {
    // grpc-go resets without a half-close, Node's clients half-close first.
    'by RST_STREAM': async (port) => {
      const client = new RawHttp2(port).begin().startCall(1, '/t/Watch')
      client.send(FrameType.DATA, 0, 1, frame(Buffer.from('a')))
      await until('the response headers', () => client.has(FrameType.HEADERS, 1))
      client.send(FrameType.RST_STREAM, 0, 1, Buffer.from([0, 0, 0, 8]))
    },
    'by losing its connection': (port) => {
      const session = connectRaw(port)
      const request = session.request(grpcHeaders('/t/Watch'))
      request.on('error', () => {})
      request.write(frame(Buffer.from('a')))
      request.once('response', () => session.destroy())
    },
  }
  for (const [how, go] of Object.entries(cases)) {
    it(`is aborted: ${how}`, async () => {
      const { seen, handler } = watched()
      const server = await startServer({ '/t/Watch': handler })
      await go(server.port)
      await until('the handler has ended', () => seen.ended === 1)
      expect(seen.aborts).toHaveLength(1)
      expect(seen.aborts[0]).toMatchObject({ code: Status.CANCELLED })
      expect(seen.errors).toEqual(seen.aborts)
      await until('nothing is left', () => server.stats.calls === 0)
      expect(server.log.lines.filter((line) => /^[EW]/.test(line))).toEqual([])
    })
  }

  it('is aborted by RST_STREAM also while the handler leaves requests unread', async () => {
    let aborted = false
    const server = await startServer({
      '/t/Deaf': async (call) => {
        await untilOver(call)
        aborted = true
      },
    })
    const request = connectRaw(server.port).request(grpcHeaders('/t/Deaf'))
    request.on('error', () => {})
    request.write(Buffer.concat(Array.from({ length: 100 }, () => frame(Buffer.alloc(500)))))
    await once(request, 'response')
    request.close(8)
    await until('the signal', () => aborted)
    await until('nothing is left', () => server.stats.calls === 0)
  })

  it('ends a write that waits for the client to read', async () => {
    let outcome: unknown
    const server = await startServer({
      '/t/Flood': async (call) => {
        try {
          for (;;) await call.write(frame(Buffer.alloc(50_000)))
        } catch (error) {
          outcome = error
        }
      },
    })
    const request = connectRaw(server.port).request(grpcHeaders('/t/Flood'))
    request.on('error', () => {})
    await once(request, 'response')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(outcome).toBeUndefined()
    request.close(8)
    await until('the write is over', () => outcome !== undefined)
    expect(outcome).toMatchObject({ code: Status.CANCELLED })
  })

  it('does not end the process when the handler awaits nothing', async () => {
    const rejections: unknown[] = []
    const note = (error: unknown) => rejections.push(error)
    process.on('unhandledRejection', note)
    afterTest(() => process.off('unhandledRejection', note))
    let over = false
    const server = await startServer({
      '/t/Careless': async (call) => {
        void call.nextRequest()
        void call.write(frame(Buffer.alloc(200_000)))
        await untilOver(call)
        void call.write(frame(Buffer.alloc(1)))
        over = true
      },
    })
    const request = connectRaw(server.port).request(grpcHeaders('/t/Careless'))
    request.on('error', () => {})
    request.pause()
    await once(request, 'response')
    request.close(8)
    await until('the call is over', () => over)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(rejections).toEqual([])
  })
})

describe('requests', () => {
  it('are read no further than asked for', async () => {
    let letGo = () => {}
    const server = await startServer({
      '/t/Slow': async (call) => {
        await new Promise<void>((resolve) => {
          letGo = resolve
        })
        await echo(call)
      },
    })
    const session = connectRaw(server.port)
    const request = session.request(grpcHeaders('/t/Slow'))
    let answered = 0
    request.on('data', (chunk: Buffer) => {
      answered += chunk.length
    })
    const message = frame(Buffer.alloc(995))
    let accepted = 0
    for (let n = 0; n < 1000; n++) request.write(message, () => accepted++)
    request.end()
    await once(request, 'response')
    await until('the window is full', () => session.state.remoteWindowSize === 0 || accepted > 50)
    await new Promise((resolve) => setTimeout(resolve, 100))
    // A window of 64 KiB, and what Node reads ahead.
    expect(accepted).toBeLessThan(200)
    letGo()
    await until('everything came back', () => answered === 1_000_000)
  })

  it('that nobody has read do not hold a call that is over', async () => {
    const server = await startServer(
      {
        '/t/Refuse': async (call) => {
          await call.nextRequest()
          await new Promise((resolve) => setTimeout(resolve, 50))
          throw new RpcError(Status.PERMISSION_DENIED, 'no')
        },
      },
      { limits: { lingerMs: 60_000 } },
    )
    const request = connectRaw(server.port).request(grpcHeaders('/t/Refuse'))
    request.resume()
    request.end(Buffer.concat(Array.from({ length: 300 }, () => frame(Buffer.alloc(995)))))
    const [trailers] = await once(request, 'trailers')
    expect(trailers).toMatchObject({ 'grpc-status': String(Status.PERMISSION_DENIED) })
    await until('the call is gone', () => server.stats.calls === 0)
  })

  it('that are too large, compressed or cut short end the call with a status', async () => {
    const server = await startServer({ '/t/Echo': echo }, { limits: { maxRequestBytes: 100 } })
    const session = connectRaw(server.port)
    const outcome = async (bytes: Buffer) => {
      const request = session.request(grpcHeaders('/t/Echo'))
      request.resume()
      request.end(bytes)
      const [trailers] = await once(request, 'trailers')
      return Number(trailers['grpc-status'])
    }
    expect(await outcome(frame(Buffer.alloc(100)))).toBe(Status.OK)
    expect(await outcome(frame(Buffer.alloc(101)))).toBe(Status.RESOURCE_EXHAUSTED)
    expect(await outcome(Buffer.from([1, 0, 0, 0, 1, 7]))).toBe(Status.UNIMPLEMENTED)
    expect(await outcome(Buffer.from([0, 0, 0, 0, 9, 7]))).toBe(Status.INTERNAL)
  })

  it('of more than 64 KiB are refused as soon as they say so: what a client sends without an end is not kept', async () => {
    const server = await startServer({ '/t/Echo': echo })
    const session = connectRaw(server.port)
    const statusAfterHeader = async (length: number) => {
      const request = session.request(grpcHeaders('/t/Echo'))
      request.resume()
      const header = Buffer.alloc(5)
      header.writeUInt32BE(length, 1)
      request.write(header)
      const refused = once(request, 'trailers').then(([trailers]) => Number(trailers['grpc-status']))
      const waiting = new Promise<string>((resolve) => setTimeout(() => resolve('waits for the rest'), 200))
      const status = await Promise.race([refused, waiting])
      request.close()
      return status
    }
    expect(await statusAfterHeader(64 * 1024)).toBe('waits for the rest')
    expect(await statusAfterHeader(64 * 1024 + 1)).toBe(Status.RESOURCE_EXHAUSTED)
  })
})
