import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { KubernetesObject } from '../cases/case.js'
import { History, type Resource, resources, type WatchEvent } from './history.js'

/** An open watch of one resource. */
interface Watch {
  readonly resource: Resource
  readonly response: ServerResponse
  /** The version up to which it has been told. */
  version: number
}

/**
 * A small API server, as far as a proxy needs one: lists and watches. It can be told to fail in the ways in which API servers fail. Selectors
 * are not applied: the objects of a run have no labels that a proxy leaves out.
 */
export class ChaosApiServer {
  readonly #history = new History()
  readonly #server: Server
  readonly #watches = new Set<Watch>()
  #isExpiring = false
  #staleLists = 0
  #delaysMs: Readonly<Partial<Record<Resource, number>>> = {}
  /** How many watches were answered with "410 Gone". */
  expired = 0

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async start(): Promise<ChaosApiServer> {
    const one = new ChaosApiServer()
    await new Promise<void>((resolve, reject) => {
      one.#server.once('error', reject)
      one.#server.listen(0, '127.0.0.1', resolve)
    })
    return one
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** It grows by one with each change. */
  get version(): number {
    return this.#history.version
  }

  /** Makes these all the objects. */
  apply(objects: readonly KubernetesObject[]): void {
    this.#history.apply(objects)
    for (const watch of this.#watches) this.#tell(watch)
  }

  /** All history is forgotten. Watches end with "410 Gone", and so do new ones until `stopExpiring`. */
  startExpiring(): void {
    this.#isExpiring = true
    this.#history.forget()
    for (const watch of this.#watches) this.#expire(watch.response)
    this.#watches.clear()
  }

  stopExpiring(): void {
    this.#isExpiring = false
  }

  /** So many lists are answered from an earlier time, as by a server whose cache lags. Watches end, so that there are lists. */
  answerStaleLists(count: number): void {
    this.#staleLists = count
    this.startExpiring()
    this.stopExpiring()
  }

  /** Events of a resource come later than those of others. */
  delayEvents(delaysMs: Readonly<Partial<Record<Resource, number>>>): void {
    this.#delaysMs = delaysMs
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://api')
    const resource = resources.find(({ path }) => url.pathname === path)
    const version = url.searchParams.get('resourceVersion') ?? ''
    // What a proxy writes are Events.
    if (request.method === 'POST') this.#send(response, 201, { kind: 'Status', status: 'Success' })
    else if (!resource) this.#object(url, response)
    else if (!url.searchParams.has('watch')) this.#list(resource.name, version, response)
    else if (url.searchParams.has('sendInitialEvents')) this.#fail(response, 422, 'streaming lists are not supported')
    else this.#watch(resource.name, Number(version), response)
  }

  #watch(resource: Resource, version: number, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    if (this.#isExpiring || !this.#history.reachesBackTo(version)) {
      this.#expire(response)
      return
    }
    const watch: Watch = { resource, response, version }
    this.#watches.add(watch)
    response.on('close', () => this.#watches.delete(watch))
    this.#tell(watch)
  }

  #list(resource: Resource, atLeast: string, response: ServerResponse): void {
    const isStale = this.#staleLists > 0 && Number(atLeast) <= this.#history.oldest
    if (isStale) this.#staleLists--
    const { version, objects } = isStale ? this.#history.earlier(resource) : this.#history.now(resource)
    this.#send(response, 200, {
      kind: 'List',
      apiVersion: 'v1',
      metadata: { resourceVersion: `${version}` },
      items: objects,
    })
  }

  #object(url: URL, response: ServerResponse): void {
    const [, path = '', name = ''] = /^(.*)\/([^/]+)$/.exec(url.pathname) ?? []
    const resource = resources.find((one) => one.path === path)
    const found = resource && this.#history.now(resource.name).objects.find(({ metadata }) => metadata.name === name)
    if (found) this.#send(response, 200, found)
    else this.#fail(response, 404, `there is no ${url.pathname}`)
  }

  #tell(watch: Watch): void {
    const events = this.#history.since(watch.resource, watch.version)
    watch.version = this.#history.version
    if (events.length === 0) return
    const write = () => {
      if (this.#watches.has(watch)) watch.response.write(events.map(line).join(''))
    }
    const delayMs = this.#delaysMs[watch.resource] ?? 0
    if (delayMs > 0) setTimeout(write, delayMs)
    else write()
  }

  #expire(response: ServerResponse): void {
    this.expired++
    const object = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410 }
    response.end(line({ type: 'ERROR', object: { ...object, message: 'too old resource version' } }))
  }

  #fail(response: ServerResponse, code: number, message: string): void {
    this.#send(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message })
  }

  #send(response: ServerResponse, code: number, body: unknown): void {
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
}

const line = (event: WatchEvent | { readonly type: 'ERROR'; readonly object: unknown }): string =>
  `${JSON.stringify(event)}\n`
