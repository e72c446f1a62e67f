import { createServer, get, type RequestListener, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { clientOf, HttpConnections, type HttpLimits, httpServerOptions } from './http-limits.js'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const lenient: HttpLimits = {
  maxConnections: 100,
  maxConnectionsPerClient: 100,
  headersTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  answerTimeoutMs: 60_000,
  maxBodyBytes: 1000,
  mayCutAnswers: false,
}

async function start(limits: Partial<HttpLimits>, handler: RequestListener = (_, response) => response.end('here')) {
  const all = { ...lenient, ...limits }
  const server = createServer(httpServerOptions(all))
  new HttpConnections(all).serve(server, handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** A connection that has sent something. Notes what it gets, and whether it was closed. */
async function opened(port: number, text = '', localAddress = '127.0.0.1') {
  const socket: Socket = connect({ host: '127.0.0.1', port, localAddress })
  closers.push(() => socket.destroy())
  const client = { socket, said: '', closed: false }
  socket.on('data', (chunk) => {
    client.said += chunk
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    client.closed = true
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  if (text !== '') socket.write(text)
  return client
}

const answer = (port: number, localAddress = '127.0.0.1') =>
  new Promise<number | string>((resolve) => {
    const asking = get({ host: '127.0.0.1', port, localAddress, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asking.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
  })

const until = (what: string, holds: () => boolean) => expect.poll(holds, { timeout: 90_000, message: what }).toBe(true)

describe('a slow client is cut off', () => {
  test.each([
    ['it says nothing', { headersTimeoutMs: 100 }, ''],
    ['its headers do not end', { headersTimeoutMs: 100 }, 'GET / HTTP/1.1\r\nHost: x\r\n'],
    [
      'its body does not end',
      { headersTimeoutMs: 100, requestTimeoutMs: 200 },
      'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1',
    ],
    ['it does not ask again', { idleTimeoutMs: 100 }, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('%s', async (_, limits, text) => {
    // The body is waited for before the answer.
    const port = await start(limits, (request, response) => void request.resume().on('end', () => response.end('here')))
    const client = await opened(port, text)
    await until('it is closed', () => client.closed)
  })

  test('it does not read its answer', async () => {
    let closed = false
    const port = await start({ answerTimeoutMs: 200 }, (_, response) => {
      response.end(Buffer.alloc(64e6)).on('close', () => {
        closed = true
      })
    })
    const client = connect({ host: '127.0.0.1', port })
    closers.push(() => client.destroy())
    client.on('error', () => {})
    client.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('the answer is given up', () => closed)
  })
})

test('an answer may take longer than any request', async () => {
  const limits = { headersTimeoutMs: 50, requestTimeoutMs: 100, idleTimeoutMs: 50, answerTimeoutMs: 0 }
  const port = await start(limits, (_, response) => {
    response.write('first ')
    setTimeout(() => response.end('last'), 1000)
  })
  const text = await (await fetch(`http://127.0.0.1:${port}`)).text()
  expect(text).toBe('first last')
})

describe('too many connections', () => {
  test('of one client: the one that has been silent longest makes room', async () => {
    const port = await start({ maxConnectionsPerClient: 3 })
    const clients = [await opened(port), await opened(port), await opened(port)]
    clients[0]?.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('the first is answered', () => clients[0]?.said.includes('200') === true)
    expect(await answer(port)).toBe(200)
    await until('the second is closed', () => clients[1]?.closed === true)
    expect([clients[0]?.closed, clients[2]?.closed]).toEqual([false, false])
  })

  test('of one client do not touch those of others', async () => {
    const port = await start({ maxConnectionsPerClient: 2 })
    const other = await opened(port, '', '127.0.0.2')
    for (let i = 0; i < 10; i++) await opened(port)
    expect(await answer(port, '127.0.0.3')).toBe(200)
    expect(other.closed).toBe(false)
  })

  test('in all: a newcomer is answered all the same', async () => {
    const port = await start({ maxConnections: 4 })
    for (let i = 2; i < 20; i++) await opened(port, '', `127.0.0.${i}`)
    expect(await answer(port)).toBe(200)
  })

  test.each([
    [false, 'ECONNRESET', true],
    [true, 200, false],
  ])('that are all being answered, with mayCutAnswers %s', async (mayCutAnswers, expected, goesOn) => {
    const port = await start({ maxConnections: 1, mayCutAnswers }, (request, response) => {
      if (request.url === '/watch') response.write('event')
      else response.end('here')
    })
    const watching = await opened(port, 'GET /watch HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('it watches', () => watching.said.includes('event'))
    expect(await answer(port)).toBe(expected)
    if (goesOn) expect(watching.closed).toBe(false)
    else await until('it is cut', () => watching.closed)
  })
})

describe('a body that is too long', () => {
  test('is refused by its length', async () => {
    const port = await start({})
    const client = await opened(port, 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n')
    await until('it is closed', () => client.closed)
    expect(client.said).toContain('413 Payload Too Large')
  })

  test('is not read to its end if nobody wants it', async () => {
    const port = await start({})
    const asking = request({ host: '127.0.0.1', port, method: 'PUT' })
    asking.on('error', () => {})
    asking.write('x')
    await new Promise((resolve) => asking.once('close', resolve))
  })
})

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::'],
  ['fe80::1%eth0', 'fe80::'],
  ['', ''],
])('the client %s is %s', (address, client) => expect(clientOf(address)).toBe(client))
