import { get } from 'node:http'
import type { Playground } from '@kpng/playground'
import { demoPort } from './demo.js'

interface ServiceObject {
  readonly spec: { readonly clusterIP?: string }
}

/** The address of the demo Service, while there is one. */
export const demoAddress = ({ objects }: Playground): string | undefined =>
  (objects.get('Service', 'web') as unknown as ServiceObject | undefined)?.spec.clusterIP

/** One call, and what came of it in one line. A new connection each time, so that each is balanced anew. */
export function call(address: string, timeoutMs = 2000): Promise<string> {
  return new Promise((resolve) => {
    const request = get({ host: address, port: demoPort, path: '/', agent: false, timeout: timeoutMs }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () => resolve(body.trim().replaceAll('\n', ' ')))
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)))
    request.on('error', (error: NodeJS.ErrnoException) => resolve(`nobody: ${error.code ?? error.message}`))
  })
}

/** Calls the demo Service once a second and prints who answered, until the signal is aborted. */
export async function keepCalling(
  playground: Playground,
  signal: AbortSignal,
  print: (line: string) => void,
  pause: (ms: number, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const address = demoAddress(playground)
    if (address !== undefined) print(`${address}:${demoPort} → ${await call(address)}`)
    await pause(1000, signal)
  }
}
