import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Kinds } from '../kinds/index.js'
import { onlyTheseKinds } from '../kinds/missing.js'
import { openApiV3, openApiV3Index } from '../schema/openapi.js'
import { methodNotAllowed, unknownResource } from '../status/status.js'
import { Discovery, reviewKinds } from './discovery.js'
import { readBody, sendJson, sendText } from './respond.js'

/** The release whose API the playground follows, and the newest whose kubectl its tests have run. kubectl warns if it is two minor versions away. */
export const serverVersion = { major: '1', minor: '33', gitVersion: 'v1.33.0+kpng' }

/**
 * kubectl asks for version 2 about kinds that version 3 does not have, and stops if there is none. This is the protobuf message
 * `openapi.v2.Document` with its version and title, and without any kind.
 */
const emptyOpenApiV2 = Buffer.from('\n\x032.0\x12\x15\n\x0fkpng playground\x12\x02v1')

const publicPaths = /^\/(healthz|livez|readyz|version)(\/.*)?$/

/** Everything that is not about stored objects: health, version, discovery, OpenAPI, and what the user may do. */
export class Documents {
  readonly #discovery: Discovery
  readonly #kinds: Kinds

  constructor(kinds: Kinds) {
    this.#kinds = kinds
    this.#discovery = new Discovery(kinds)
  }

  /** What is answered without a token; false when the path is something else. */
  answerPublic({ pathname }: URL, response: ServerResponse): boolean {
    if (!publicPaths.test(pathname)) return false
    if (pathname.startsWith('/version')) {
      const { platform, arch, version: goVersion } = process
      const build = { gitTreeState: 'clean', goVersion, compiler: 'node', platform: `${platform}/${arch}` }
      sendJson(response, 200, { ...serverVersion, ...build })
    } else sendText(response, 200, 'ok', 'text/plain; charset=utf-8')
    return true
  }

  /** Discovery and OpenAPI; false when the path is something else. */
  answer(request: IncomingMessage, url: URL, response: ServerResponse): boolean {
    if (request.method !== 'GET') return false
    const accept = request.headers.accept ?? ''
    const [, root, version, ...rest] = url.pathname.split('/')
    if (root === 'openapi' && version === 'v2') {
      sendText(response, 200, emptyOpenApiV2, 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf')
      return true
    }
    if (root === 'openapi' && version === 'v3') {
      const [api, first = '', second = ''] = rest
      const [group, groupVersion] = api === 'api' ? ['', first] : [first, second]
      const document = rest.length === 0 ? openApiV3Index(this.#kinds) : openApiV3(this.#kinds, group, groupVersion)
      if (!document) throw unknownResource()
      sendJson(response, 200, document)
      return true
    }
    if (url.pathname === '/apis/apiextensions.k8s.io/v1/customresourcedefinitions') {
      // kubectl asks for them when a file has a kind that it cannot find, and stops if it gets no list.
      const list = {
        kind: 'CustomResourceDefinitionList',
        apiVersion: 'apiextensions.k8s.io/v1',
        metadata: {},
        items: [],
      }
      sendJson(response, 200, list, [onlyTheseKinds(this.#kinds)])
      return true
    }
    const answer = this.#discovery.answer(url.pathname.replace(/\/$/, ''), accept, request.headers.host ?? '')
    if (answer === undefined) return false
    sendText(response, 200, JSON.stringify(answer), Discovery.contentType(answer))
    return true
  }

  /** `kubectl auth can-i` and `whoami`: there is one user here, who may do everything. */
  async answerReview(request: IncomingMessage, url: URL, response: ServerResponse): Promise<void> {
    const [, , group, , plural] = url.pathname.split('/')
    const review = reviewKinds.find((item) => item.group === group && item.plural === plural)
    if (!review) throw unknownResource()
    if (request.method !== 'POST') throw methodNotAllowed()
    // The answer is the same for every question.
    await readBody(request)
    const everything = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
    const groups = ['system:masters', 'system:authenticated']
    const status = {
      SelfSubjectAccessReview: { allowed: true },
      SelfSubjectRulesReview: { resourceRules: [everything], nonResourceRules: [], incomplete: false },
      SelfSubjectReview: { userInfo: { username: 'kpng-playground', groups } },
    }[review.kind]
    sendJson(response, 201, { kind: review.kind, apiVersion: `${group}/v1`, metadata: {}, spec: {}, status })
  }
}
