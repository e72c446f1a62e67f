import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { recordingLog as recording } from '../../../core/testing/until.js'

// Clients and pods for tests, on real sockets.

export interface TestServer {
  readonly port: number
  /** Connections that it was given so far. */
  readonly accepted: () => number
  close(): Promise<void>
}

/** A TCP server; by default it sends its name to each client and closes the connection. */
export async function tcpServer(
  ip: string,
  name: string,
  {
    port = 0,
    serve = (socket: Socket) => void socket.end(name),
  }: { port?: number; serve?: (socket: Socket) => void } = {},
): Promise<TestServer> {
  let accepted = 0
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    serve(socket)
  })
  server.listen(port, ip)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    accepted: () => accepted,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A UDP server that answers each datagram with `name:datagram`. */
export async function udpServer(ip: string, name: string, port = 0): Promise<TestServer> {
  const socket = createSocket(ip.includes(':') ? 'udp6' : 'udp4')
  let accepted = 0
  socket.on('message', (datagram, from) => {
    accepted++
    socket.send(`${name}:${datagram}`, from.port, from.address)
  })
  socket.bind(port, ip)
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    accepted: () => accepted,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

/** Everything that a TCP server sends, after `say` was sent and the client's side ended. */
export function ask(ip: string, port: number, say = '', localAddress?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: ip, port, ...(localAddress ? { localAddress } : {}) })
    let answer = ''
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      answer += text
    })
    socket.on('error', reject)
    socket.on('close', (hadError) => !hadError && resolve(answer))
    socket.end(say)
  })
}

/** How connecting and asking ends: the answer, or the code of the error. */
export const outcome = (ip: string, port: number, localAddress?: string): Promise<string> =>
  ask(ip, port, '', localAddress).catch((error: NodeJS.ErrnoException) => error.code ?? error.message)

/** A UDP client that keeps its port. 0: any. */
export async function udpClient(localAddress: string, localPort = 0) {
  const socket = createSocket(localAddress.includes(':') ? 'udp6' : 'udp4')
  socket.on('error', () => {})
  socket.bind(localPort, localAddress)
  await once(socket, 'listening')
  return {
    /** The answer, or "silence". `answers`: whence one is taken for an answer. */
    async ask(
      ip: string,
      port: number,
      text: string,
      timeoutMs = 500,
      answers: 'from there' | 'from anywhere' = 'from there',
    ): Promise<string> {
      const answer = new Promise<string>((resolve) => {
        const done = (said: string) => {
          clearTimeout(timer)
          socket.off('message', take)
          resolve(said)
        }
        // What comes from elsewhere is no answer: a connected socket, as most resolvers have, would never see it.
        const take = (datagram: Buffer, from: RemoteInfo) => {
          const isThere = from.address === ip && from.port === port
          if (isThere || answers === 'from anywhere') done(datagram.toString())
        }
        const timer = setTimeout(done, timeoutMs, 'silence')
        socket.on('message', take)
      })
      socket.send(text, port, ip)
      return answer
    },
    close: () => socket.close(),
  }
}

/** What the backend logged, at any level. */
export function recordingLog() {
  const { told: lines, log } = recording()
  return { lines, log }
}
