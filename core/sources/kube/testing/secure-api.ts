import type { IncomingMessage } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** What a request said of who sent it. */
export interface Seen {
  readonly authorization: string | undefined
  readonly clientName: string | undefined
  readonly serverName: string | false | null | undefined
  readonly headers: IncomingMessage['headers']
  readonly url: string | undefined
}

/** An HTTPS server that answers `{}` (or what `statusOf` says) and notes who asked. */
export async function startSecureApi(options: ServerOptions, statusOf: (seen: Seen) => number = () => 200) {
  const seen: Seen[] = []
  const server = createServer({ requestCert: true, rejectUnauthorized: false, ...options }, (request, response) => {
    const socket = request.socket as TLSSocket
    const peer = socket.getPeerCertificate()
    const now: Seen = {
      authorization: request.headers.authorization,
      clientName: peer?.subject?.CN,
      serverName: (socket as TLSSocket & { servername?: string | false | null }).servername,
      headers: request.headers,
      url: request.url,
    }
    seen.push(now)
    response.writeHead(statusOf(now), { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { seen, port, url: `https://127.0.0.1:${port}`, stop }
}
