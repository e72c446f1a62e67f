import { get } from 'node:http'

/** What came of one call: the pod that answered, or why nobody did. */
export type Answer = { readonly pod: string; readonly ms: number } | { readonly problem: string; readonly ms: number }

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to the address',
}

/** One call over a connection of its own, so that each is balanced anew. */
export function call(host: string, port: number, timeoutMs = 2000): Promise<Answer> {
  const began = performance.now()
  return new Promise((resolve) => {
    const end = (what: { pod: string } | { problem: string }) => resolve({ ...what, ms: performance.now() - began })
    const headers = { accept: 'application/json' }
    const request = get({ host, port, path: '/', agent: false, timeout: timeoutMs, headers }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () => end(podIn(body)))
      response.on('error', (error) => end({ problem: error.message }))
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)))
    request.on('error', ({ code = '', message }: NodeJS.ErrnoException) => end({ problem: words[code] ?? message }))
  })
}

function podIn(body: string): { pod: string } | { problem: string } {
  try {
    const { pod } = JSON.parse(body)
    if (typeof pod === 'string') return { pod }
  } catch {
    // Not an echo server.
  }
  return { problem: 'something answers that is not a pod of this playground' }
}
