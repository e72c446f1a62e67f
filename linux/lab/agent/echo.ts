import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { answerBulk, bulkMark } from './bulk.js'
import type { Echo, Place } from './protocol.js'

/** Answers each line (TCP) or datagram (UDP) with who it is and where the question seemed to come from. */
export function serve(server: string, place: Place): Promise<void> {
  return place.protocol === 'TCP' ? serveTcp(server, place) : serveUdp(server, place)
}

function serveTcp(name: string, { ip, port }: Place): Promise<void> {
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    const answer = `${JSON.stringify(echo('?', name, socket.remoteAddress, socket.localPort ?? port))}\n`
    socket.once('data', (first: Buffer) => {
      if (first.toString('latin1', 0, 1) === bulkMark) return answerBulk(socket, first, answer)
      const answerLines = (chunk: Buffer) => {
        for (const byte of chunk) if (byte === 0x0a) socket.write(answer)
      }
      answerLines(first)
      socket.on('data', answerLines)
      socket.on('end', () => socket.end())
    })
    socket.on('error', () => socket.destroy())
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: ip, port, backlog: 511, ipv6Only: true }, resolve)
  })
}

function serveUdp(name: string, { ip, port }: Place): Promise<void> {
  const socket = createSocket({ type: ip.includes(':') ? 'udp6' : 'udp4', ipv6Only: ip.includes(':') })
  socket.on('message', (message, { address, port: clientPort }) => {
    // A client that is gone or unreachable is not a fault of the server.
    socket.send(JSON.stringify(echo(message.toString(), name, address, port)), clientPort, address, () => {})
  })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ address: ip, port }, () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      resolve()
    })
  })
}

const echo = (question: string, server: string, from: string | undefined, port: number): Echo => ({
  question,
  server,
  from: (from ?? '').replace(/^::ffff:/, '').replace(/%.*$/, ''),
  port,
})
