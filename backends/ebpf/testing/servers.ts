import { connect, createServer, type Server } from 'node:net'
import { hostPort } from '@kpng/api'

/** A server that answers each connection with its name, on any free port or on the given one. */
export function serve(ip: string, name: string, port = 0): Promise<{ ip: string; port: number; server: Server }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(name)
  })
  return new Promise((resolve) => {
    server.listen(port, ip, () => resolve({ ip, port: (server.address() as { port: number }).port, server }))
  })
}

/** What a client sees: the server's name and the peer that the socket names, or the error's code. */
export function ask(host: string, port: number): Promise<{ answer: string; peer?: string }> {
  return new Promise((resolve) => {
    let answer = ''
    let peer = ''
    const socket = connect({ host, port })
    socket.on('connect', () => {
      peer = hostPort(socket.remoteAddress ?? '', socket.remotePort ?? 0)
    })
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('end', () => resolve({ answer, peer }))
    socket.on('error', (error: NodeJS.ErrnoException) => resolve({ answer: error.code ?? 'error' }))
  })
}

/** How often each answer came. */
export async function askOften(times: number, host: string, port: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (let time = 0; time < times; time++) {
    const { answer } = await ask(host, port)
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}
