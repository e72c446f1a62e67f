import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { answerBulk, bulkMark } from './bulk.js'
import type { Echo, Place } from './protocol.js'

/** Answers each line (TCP, SCTP) or datagram (UDP) with who it is and where the question seemed to come from. */
export function serve(server: string, place: Place): Promise<void> {
  return place.protocol === 'UDP' ? serveUdp(server, place) : serveConnections(server, place)
}

async function serveConnections(name: string, { protocol, ip, port }: Place): Promise<void> {
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
  const at =
    protocol === 'SCTP'
      ? { fd: await (await import('./sctp.js')).bindSctp(ip, port) }
      : { host: ip, port, ipv6Only: true }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...at, backlog: 511 }, resolve)
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
