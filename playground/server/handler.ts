import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '@kpng/api'
import type { Faults } from '../faults.js'
import { keyOf, resourceOf } from '../kinds/kind.js'
import type { KubeObject } from '../objects/types.js'
import { patchTypes } from '../registry/patch.js'
import type { Registry } from '../registry/registry.js'
import { scaleOf } from '../registry/scale.js'
import { definitions } from '../schema/definitions.js'
import { openApiV3, openApiV3Index } from '../schema/openapi.js'
import { openApiV2, openApiV2Protobuf } from '../schema/openapi-v2.js'
import type { Definition } from '../schema/parse.js'
import { Stored } from '../storage/store.js'
import { Discovery, reviewKinds } from './discovery.js'
import { selectionOf } from './filter.js'
import { listPage } from './list.js'
import { type Representation, representationFor } from './representation.js'
import { parseBody, readBody, sendError, sendJson, sendList, sendObject, sendText } from './respond.js'
import { type Route, routeOf } from './route.js'
import { methodNotAllowed, unauthorized, unknownResource, unsupportedMediaType } from './status.js'
import type { IncludeObject } from './table.js'
import { openWatch, type WatchSettings } from './watch.js'
import { create, deletedStatus, patch, remove, removeAll, replace, type WriteRequest, type Written } from './write.js'

export const serverVersion = { major: '1', minor: '34', gitVersion: 'v1.34.0+kpng' }

export interface HandlerOptions {
  registry: Registry
  faults: Faults
  watchSettings: WatchSettings
  token: string
  maxGracePeriodSeconds: number
  log: Log
}

const publicPaths = /^\/(healthz|livez|readyz|version)(\/.*)?$/

/** Answers one request after the other; knows HTTP, leaves every decision on objects to the registry. */
export class Handler {
  private readonly discovery: Discovery

  constructor(private readonly options: HandlerOptions) {
    this.discovery = new Discovery(options.registry.kinds)
  }

  readonly handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const url = new URL(request.url ?? '/', 'https://playground')
      if (publicPaths.test(url.pathname)) return this.answerPublic(url, response)
      this.authenticate(request)
      await this.options.faults.beforeAnswer(request.method ?? 'GET', url)
      if (this.answerDocument(request, url, response)) return
      await this.answerResource(request, url, response)
    } catch (error) {
      this.options.log.detail(3, 'A request was refused', { method: request.method, url: request.url, error })
      sendError(response, error)
    }
  }

  private answerPublic({ pathname }: URL, response: ServerResponse): void {
    if (!pathname.startsWith('/version')) return sendText(response, 200, 'ok', 'text/plain; charset=utf-8')
    const { platform, arch, version } = process
    sendJson(response, 200, {
      ...serverVersion,
      gitTreeState: 'clean',
      goVersion: version,
      compiler: 'node',
      platform: `${platform}/${arch}`,
    })
  }

  private authenticate(request: IncomingMessage): void {
    const given = Buffer.from(request.headers.authorization ?? '')
    const expected = Buffer.from(`Bearer ${this.options.token}`)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw unauthorized()
  }

  /** Discovery and OpenAPI; false when the path is something else. */
  private answerDocument(request: IncomingMessage, url: URL, response: ServerResponse): boolean {
    if (request.method !== 'GET') return false
    const { kinds } = this.options.registry
    const accept = request.headers.accept ?? ''
    const [, root, version, ...rest] = url.pathname.split('/')
    if (root === 'openapi' && version === 'v2') {
      if (accept.includes('protobuf'))
        sendText(response, 200, openApiV2Protobuf(kinds), 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
      else sendJson(response, 200, openApiV2(kinds))
      return true
    }
    if (root === 'openapi' && version === 'v3') {
      const [api, group = '', groupVersion] = rest
      const [wantedGroup, wantedVersion] = api === 'api' ? ['', group] : [group, groupVersion ?? '']
      const document = rest.length === 0 ? openApiV3Index(kinds) : openApiV3(kinds, wantedGroup, wantedVersion)
      if (!document) throw unknownResource()
      sendJson(response, 200, document)
      return true
    }
    const answer = this.discovery.answer(url.pathname.replace(/\/$/, ''), accept, request.headers.host ?? '')
    if (answer === undefined) return false
    sendText(response, 200, JSON.stringify(answer), Discovery.contentType(answer))
    return true
  }

  private async answerResource(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const { registry } = this.options
    const route = routeOf(url.pathname, registry.kinds)
    if (!route) return this.answerReview(request, url, response)
    checkSubresource(route)
    const query = url.searchParams
    const include = (query.get('includeObject') || 'Metadata') as IncludeObject
    const form = representationFor(route.kind, request.headers.accept ?? '', include)
    if (request.method === 'GET') return this.read(route, query, form, response)
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
    this.write(request.method ?? '', write, form, response)
  }

  private async read(
    route: Route,
    query: URLSearchParams,
    form: Representation,
    response: ServerResponse,
  ): Promise<void> {
    const { registry, faults, watchSettings } = this.options
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

  private write(method: string, request: WriteRequest, form: Representation, response: ServerResponse): void {
    const { registry, maxGracePeriodSeconds } = this.options
    switch (method) {
      case 'POST':
        return this.sendWritten(create(registry, request), form, response)
      case 'PUT':
        return this.sendWritten(replace(registry, request), form, response)
      case 'PATCH':
        return this.sendWritten(patch(registry, request), form, response)
      case 'DELETE': {
        const { route, query } = request
        if (route.name === undefined) return this.deleteCollection(request, response)
        const { object, gone } = remove(registry, { ...request, query }, maxGracePeriodSeconds)
        if (gone) return sendJson(response, 200, deletedStatus(route, object))
        return this.sendWritten({ code: 200, object, warnings: [] }, form, response)
      }
      default:
        throw methodNotAllowed()
    }
  }

  private deleteCollection(request: WriteRequest, response: ServerResponse): void {
    const { registry, maxGracePeriodSeconds } = this.options
    const { route, query } = request
    const { items, meta } = listPage(registry.store, route, query, selectionOf(route, query))
    removeAll(
      registry,
      request,
      items.map(({ key }) => key),
      maxGracePeriodSeconds,
    )
    sendJson(response, 200, {
      kind: `${route.kind.kind}List`,
      apiVersion: route.kind.group === '' ? route.kind.version : `${route.kind.group}/${route.kind.version}`,
      metadata: meta,
      items: items.map(({ object }) => object),
    })
  }

  private sendWritten({ code, object, warnings }: Written, form: Representation, response: ServerResponse): void {
    if (object.kind === 'Scale') return sendJson(response, code, object, warnings)
    const { kind, apiVersion, metadata, ...rest } = object as KubeObject
    const stored = new Stored('', Number(metadata.resourceVersion ?? 0), { kind, apiVersion, metadata, ...rest })
    sendObject(response, code, stored, form, warnings)
  }

  /** `kubectl auth can-i` and `whoami`: there is one user here, who may do everything. */
  private async answerReview(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const [, , group, , plural] = url.pathname.split('/')
    const review = reviewKinds.find((item) => item.group === group && item.plural === plural)
    if (!review) throw unknownResource()
    if (request.method !== 'POST') throw methodNotAllowed()
    // The one user may do everything, so the question itself does not matter.
    await readBody(request)
    const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
    const status = {
      SelfSubjectAccessReview: { allowed: true },
      SelfSubjectRulesReview: { resourceRules: [everything], nonResourceRules: [], incomplete: false },
      SelfSubjectReview: {
        userInfo: { username: 'kpng-playground', groups: ['system:masters', 'system:authenticated'] },
      },
    }[review.kind]
    sendJson(response, 201, { kind: review.kind, apiVersion: `${group}/v1`, metadata: {}, spec: {}, status })
  }
}

const bodyTypes = ['application/json', 'application/vnd.kubernetes.protobuf'] as const

/** What a body holds: the object itself, its scale, or how to delete it. */
function bodyDefinition(method: string | undefined, { kind, subresource }: Route): Definition | undefined {
  if (method === 'DELETE') return definitions.get('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions')
  return definitions.get(subresource === 'scale' ? 'io.k8s.api.autoscaling.v1.Scale' : kind.type)
}

function checkSubresource({ kind, subresource }: Route): void {
  const known =
    subresource === '' || (subresource === 'status' && kind.hasStatus) || (subresource === 'scale' && kind.hasScale)
  if (!known) throw unknownResource()
}
