import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendText } from './respond.js'

/** How much is logged, to be changed while it runs. */
export interface Verbosity {
  get(): number
  set(level: number): void
}

const mostBytes = 16
const loopback = /^(?:127\.|::1$|::ffff:127\.)/

/**
 * GET says the verbosity, PUT sets it: `curl -X PUT -d 4 127.0.0.1:10249/debug/flags/v`, as with kube-proxy. From another machine it
 * can be set only with profiling on, because a client that may read metrics must not be able to fill the log.
 */
export async function answerVerbosity(
  request: IncomingMessage,
  response: ServerResponse,
  verbosity: Verbosity,
  profiling: boolean,
): Promise<void> {
  if (request.method === 'GET') return sendText(response, 200, `${verbosity.get()}\n`)
  if (request.method !== 'PUT') return sendText(response, 405, 'Use GET, or PUT with the level as the body.\n')
  if (!profiling && !loopback.test(request.socket.remoteAddress ?? '')) {
    return sendText(response, 403, 'From another machine this needs enableProfiling.\n')
  }
  const text = await bodyOf(request)
  if (text === undefined || !/^\d{1,3}$/.test(text)) {
    return sendText(
      response,
      400,
      `The body is to be a level such as 4, not ${JSON.stringify(text?.slice(0, mostBytes))}.\n`,
    )
  }
  verbosity.set(Number(text))
  sendText(response, 200, `successfully set klog.logging.verbosity to ${text}\n`)
}

/** The trimmed body, or undefined when it is longer than a level can be. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > mostBytes) return undefined
  }
  return text.trim()
}
