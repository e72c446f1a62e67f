import { messageOf } from '@kpng/api'
import { type Fields, isFields } from '../../kubernetes/fields.js'
import { type KubeConnection, readBody } from './client/index.js'

/** What the API server says about itself. */
export interface ServerAnswer {
  /** `v1.33.0` */
  readonly version: string
  /** The server's clock minus ours. Undefined if it does not tell its time. */
  readonly clockAheadMs: number | undefined
}

/** Asks for the version. Rejects if the server cannot be reached, with a sentence that says why. */
export async function askServer(connection: KubeConnection): Promise<ServerAnswer> {
  const before = Date.now()
  const { status, headers, body } = await connection.request({ path: '/version', headersTimeoutMs: 10_000 })
  const after = Date.now()
  const text = await readBody(body)
  if (status !== 200) throw new Error(`the API server ${connection.server} answered ${status} to /version`)
  const answer: unknown = JSON.parse(text)
  const toldMs = Date.parse(headers.date ?? '')
  // The header has whole seconds, so the server's time is half a second later on average.
  const clockAheadMs = Number.isNaN(toldMs) ? undefined : toldMs + 500 - (before + after) / 2
  return { version: String(isFields(answer) ? answer.gitVersion : 'unknown'), clockAheadMs }
}

/** Something that kpng does at the API server. */
export interface Right {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly isAllowed: boolean
}

const needed: readonly Omit<Right, 'isAllowed'>[] = [
  ...[
    { group: '', resource: 'services' },
    { group: 'discovery.k8s.io', resource: 'endpointslices' },
    { group: '', resource: 'nodes' },
    { group: 'networking.k8s.io', resource: 'servicecidrs' },
  ].flatMap((resource) => ['list', 'watch'].map((verb) => ({ verb, ...resource }))),
  { verb: 'create', group: 'events.k8s.io', resource: 'events' },
]

/** What the user of this connection may do of what kpng needs. Rejects if the server cannot say. */
export function askRights(connection: KubeConnection): Promise<Right[]> {
  return Promise.all(
    needed.map(async (right) => {
      const { status, body } = await connection.request({
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: JSON.stringify({
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes: right },
        }),
      })
      const text = await readBody(body)
      if (status >= 300) throw new Error(`the API server answered ${status} to a SelfSubjectAccessReview`)
      const answer: unknown = JSON.parse(text)
      const review: Fields = isFields(answer) && isFields(answer.status) ? answer.status : {}
      return { ...right, isAllowed: review.allowed === true }
    }),
  )
}

/** The ConfigMap that kubeadm keeps kube-proxy's configuration in, as JSON. Rejects with the reason if it cannot be read. */
export async function readKubeProxyConfigMap(connection: KubeConnection): Promise<string> {
  const path = '/api/v1/namespaces/kube-system/configmaps/kube-proxy'
  try {
    const { status, body } = await connection.request({ path })
    const text = await readBody(body, 4 * 1024 * 1024)
    if (status === 200) return text
    throw new Error(status === 404 ? 'it does not exist' : `the API server answered ${status}`)
  } catch (error) {
    throw new Error(`the ConfigMap kube-system/kube-proxy cannot be read: ${messageOf(error)}`)
  }
}
