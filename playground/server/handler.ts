import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '@kpng/api'
import type { Faults } from '../faults.js'
import { apiVersionOf, resourceOf } from '../kinds/kind.js'
import { missingKindAt, noSuchFeature, noSuchKind } from '../kinds/missing.js'
import type { Pod } from '../objects/kinds.js'
import { keyOf } from '../objects/types.js'
import { patchTypes } from '../registry/patch.js'
import type { Registry } from '../registry/registry.js'
import { scaleOf } from '../registry/scale.js'
import { definitions } from '../schema/definitions.js'
import type { Definition } from '../schema/parse.js'
import { methodNotAllowed, unauthorized, unknownResource, unsupportedMediaType } from '../status/status.js'
import { kindFirst, Stored } from '../storage/store.js'
import { Documents } from './documents.js'
import { selectionOf } from './filter.js'
import { listPage } from './list.js'
import { openWatch, type WatchSettings } from './open-watch.js'
import { type IncludeObject, type Representation, representationFor } from './representation.js'
import { parseBody, readBody, sendError, sendJson, sendList, sendObject } from './respond.js'
import { type Route, routeOf } from './route.js'
import { create, deletedStatus, patch, remove, removeAll, replace, type WriteRequest, type Written } from './write.js'

interface HandlerOptions {
  registry: Registry
  faults: Faults
  watchSettings: WatchSettings
  token: string
  maxGracePeriodSeconds: number
  log: Log
}

const bodyTypes = ['application/json', 'application/vnd.kubernetes.protobuf'] as const

/** Answers one request after the other; knows HTTP, leaves every decision on objects to the registry. */
export class Handler {
  readonly #documents: Documents
  readonly #options: HandlerOptions

  constructor(options: HandlerOptions) {
    this.#options = options
    this.#documents = new Documents(options.registry.kinds)
  }

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const url = new URL(request.url ?? '/', 'https://playground')
      if (this.#documents.answerPublic(url, response)) return
      this.#authenticate(request)
      await this.#options.faults.beforeAnswer(request.method ?? 'GET', url)
      if (this.#documents.answer(request, url, response)) return
      await this.#answer(request, url, response)
    } catch (error) {
      this.#options.log.detail(3, 'A request was refused', { method: request.method, url: request.url, error })
      sendError(response, error)
    }
  }

  #authenticate(request: IncomingMessage): void {
    const given = Buffer.from(request.headers.authorization ?? '')
    const expected = Buffer.from(`Bearer ${this.#options.token}`)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw unauthorized()
  }

  async #answer(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const route = routeOf(url.pathname, this.#options.registry.kinds)
    if (!route) {
      const missing = missingKindAt(url.pathname)
      if (missing) throw noSuchKind(missing, this.#options.registry.kinds)
      return this.#documents.answerReview(request, url, response)
    }
    this.#checkSubresource(route)
    const query = url.searchParams
    const include = (query.get('includeObject') || 'Metadata') as IncludeObject
    const form = representationFor(route.kind, request.headers.accept ?? '', include)
    if (request.method === 'GET') return this.#read(route, query, form, response)
    const body = await readBody(request)
    const contentType = (request.headers['content-type'] ?? 'application/json').split(';')[0]?.trim() ?? ''
    const accepted = request.method === 'PATCH' ? patchTypes : bodyTypes
    if (body.length > 0 && !accepted.some((type) => type === contentType)) throw unsupportedMediaType(accepted)
    const write: WriteRequest = {
      route,
      query,
      contentType,
      userAgent: request.headers['user-agent'] ?? '',
      body: body.length === 0 ? undefined : parseBody(body, bodyDefinition(request.method, route)),
    }
    this.#write(request.method ?? '', write, form, response)
  }

  #checkSubresource({ kind, namespace, name = '', subresource }: Route): void {
    const status = subresource === 'status' && kind.hasStatus
    const scale = subresource === 'scale' && kind.hasScale
    if (subresource === '' || status || scale) return
    const pod = kind.plural === 'pods' && (this.#options.registry.get(kind, namespace, name) as Pod)
    throw (pod && noSuchFeature(subresource, pod)) || unknownResource()
  }

  async #read(route: Route, query: URLSearchParams, form: Representation, response: ServerResponse): Promise<void> {
    const { registry, faults, watchSettings } = this.#options
    const { kind, namespace, name, subresource } = route
    const watches = query.get('watch') === 'true' || query.get('watch') === '1'
    if (name !== undefined && !watches) {
      const object = registry.get(kind, namespace, name)
      if (subresource === 'scale') return sendJson(response, 200, scaleOf(object))
      const stored = registry.store.get(resourceOf(kind), keyOf(namespace, name))
      return stored && sendObject(response, 200, stored, form)
    }
    const selection = selectionOf(route, query)
    if (!watches) return sendList(response, listPage(registry.store, route, query, selection), form)
    const watch = openWatch(registry.store, route, query, selection.filter, form, response, watchSettings)
    faults.follow(watch, (listener) => response.on('close', listener))
  }

  #write(method: string, request: WriteRequest, form: Representation, response: ServerResponse): void {
    const { registry } = this.#options
    if (method === 'POST') sendWritten(create(registry, request), form, response)
    else if (method === 'PUT') sendWritten(replace(registry, request), form, response)
    else if (method === 'PATCH') sendWritten(patch(registry, request), form, response)
    else if (method !== 'DELETE') throw methodNotAllowed()
    else if (request.route.name === undefined) this.#deleteCollection(request, response)
    else this.#deleteOne(request, form, response)
  }

  #deleteOne(request: WriteRequest, form: Representation, response: ServerResponse): void {
    const { registry, maxGracePeriodSeconds } = this.#options
    const { object, gone } = remove(registry, request, maxGracePeriodSeconds)
    if (gone) sendJson(response, 200, deletedStatus(request.route, object))
    else sendWritten({ code: 200, object, warnings: [] }, form, response)
  }

  #deleteCollection(request: WriteRequest, response: ServerResponse): void {
    const { registry, maxGracePeriodSeconds } = this.#options
    const { route, query } = request
    const { items, meta } = listPage(registry.store, route, query, selectionOf(route, query))
    const keys = items.map(({ key }) => key)
    removeAll(registry, request, keys, maxGracePeriodSeconds)
    const apiVersion = apiVersionOf(route.kind)
    const objects = items.map(({ object }) => object)
    sendJson(response, 200, { kind: `${route.kind.kind}List`, apiVersion, metadata: meta, items: objects })
  }
}

function sendWritten({ code, object, warnings }: Written, form: Representation, response: ServerResponse): void {
  if (object.kind === 'Scale') {
    sendJson(response, code, object, warnings)
    return
  }
  const stored = new Stored('', Number(object.metadata.resourceVersion ?? 0), kindFirst(object))
  sendObject(response, code, stored, form, warnings)
}

/** What a body holds: the object itself, its scale, or how to delete it. */
function bodyDefinition(method: string | undefined, { kind, subresource }: Route): Definition | undefined {
  if (method === 'DELETE') return definitions.get('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions')
  return definitions.get(subresource === 'scale' ? 'io.k8s.api.autoscaling.v1.Scale' : kind.type)
}
