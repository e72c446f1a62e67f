import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'

/** Answers from the agent API on a unix socket: that of a kpng in another process, or in another network namespace. */
export const forwardTo =
  (socketPath: string) =>
  (incoming: IncomingMessage, response: ServerResponse): void => {
    const { method, url, headers } = incoming
    const { connection: _, host: __, ...passed } = headers
    const asked = request({ socketPath, method, path: url, headers: { ...passed, host: 'localhost' } }, (answer) => {
      const { connection: ___, 'transfer-encoding': ____, ...given } = answer.headers
      response.writeHead(answer.statusCode ?? 502, given)
      // Events must not wait for each other.
      response.flushHeaders()
      pipeline(answer, response, () => {})
    })
    asked.on('error', (error) => {
      if (response.headersSent) response.destroy()
      else
        response
          .writeHead(502, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ error: `The kpng on ${socketPath} does not answer: ${error.message}` }))
    })
    response.once('close', () => asked.destroy())
    asked.end()
  }
