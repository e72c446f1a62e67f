import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { KubeObject, Playground } from '../index.js'

export interface Answer {
  code: number
  headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  body: any
}

export interface WatchEvent {
  type: string
  object: KubeObject & { code?: number; reason?: string; message?: string }
}

type Target = Pick<Playground, 'url' | 'caPem' | 'token'>
type Headers = Record<string, string>

function open(target: Target, method: string, path: string, headers: Headers, body?: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const authorization = `Bearer ${target.token}`
    // Without a length Node.js would send the body of a DELETE as if there were none.
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = { method, ca: target.caPem, agent: false, headers: { authorization, ...length, ...headers } }
    const request = httpsRequest(target.url + path, options, resolve)
    request.on('error', reject)
    request.end(body)
  })
}

/** One request. A Buffer is sent as it is, anything else as JSON; an answer that is not JSON is returned as text. */
export async function call(
  target: Target,
  method: string,
  path: string,
  body?: unknown,
  headers: Headers = {},
): Promise<Answer> {
  const content = body === undefined ? {} : { 'content-type': 'application/json' }
  const response = await open(
    target,
    method,
    path,
    { ...content, ...headers },
    Buffer.isBuffer(body) ? body.toString() : body === undefined ? undefined : JSON.stringify(body),
  )
  let text = ''
  for await (const chunk of response) text += chunk
  const { statusCode: code = 0, headers: answered } = response
  try {
    return { code, headers: answered, body: JSON.parse(text) }
  } catch {
    return { code, headers: answered, body: text }
  }
}

/** A watch whose events are taken one by one. */
export class TestWatch {
  readonly code: number
  readonly #events: WatchEvent[] = []
  #waiting: ((event: WatchEvent | undefined) => void) | undefined
  /** Resolves with how it ended. */
  readonly ended: Promise<'end' | 'cut'>

  readonly #response: IncomingMessage

  constructor(response: IncomingMessage) {
    this.#response = response
    this.code = response.statusCode ?? 0
    let rest = ''
    response.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#see(JSON.parse(line) as WatchEvent)
    })
    this.ended = new Promise((resolve) => {
      response.on('end', () => resolve('end'))
      response.on('error', () => resolve('cut'))
      response.on('aborted', () => resolve('cut'))
    })
    void this.ended.then(() => this.#waiting?.(undefined))
  }

  static async open(target: Target, path: string, headers: Headers = {}): Promise<TestWatch> {
    return new TestWatch(await open(target, 'GET', path, headers))
  }

  #see(event: WatchEvent): void {
    if (!this.#waiting) this.#events.push(event)
    this.#waiting?.(event)
    this.#waiting = undefined
  }

  /** The next event; undefined when none came within the time, or the watch ended. */
  next(timeoutMs = 2000): Promise<WatchEvent | undefined> {
    const event = this.#events.shift()
    if (event) return Promise.resolve(event)
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#waiting?.(undefined), timeoutMs)
      this.#waiting = (found) => {
        clearTimeout(timer)
        this.#waiting = undefined
        resolve(found)
      }
    })
  }

  /** `TYPE name` of the next events. */
  async take(count: number): Promise<string[]> {
    const seen: string[] = []
    for (let index = 0; index < count; index++) {
      const event = await this.next()
      seen.push(event ? `${event.type} ${event.object.metadata?.name ?? event.object.code ?? ''}` : 'nothing')
    }
    return seen
  }

  close(): void {
    this.#response.destroy()
  }
}

/** A Service as people write it. */
export const service = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, ...metadata },
  spec: { ports: [{ port: 80 }], ...spec },
})

/** A Pod with one container. */
export const pod = (name: string, labels: Record<string, string> = {}, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: { containers: [{ name: 'main', image: 'sample', ports: [{ containerPort: 8080 }] }], ...spec },
})
