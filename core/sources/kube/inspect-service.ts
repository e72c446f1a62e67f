import { messageOf } from '@kpng/api'
import { type Fields, isFields } from '../../kubernetes/fields.js'
import { whyNotServed } from '../../kubernetes/not-served.js'
import { type KubeConnection, readBody } from './client/index.js'

/** What the API server says about one Service beyond what a proxy watches. */
export interface ServiceInspection {
  readonly exists: boolean
  /** See `whyNotServed`. */
  readonly notServed?: string
  /** What is wrong outside the proxy, as sentences: a selector that matches nothing, a port name that no pod has. */
  readonly causes: readonly string[]
}

/** Looks at a Service and its pods. Never rejects: what cannot be read is one of the causes. */
export async function inspectService(
  connection: KubeConnection,
  namespace: string,
  name: string,
  serviceProxyName = '',
): Promise<ServiceInspection> {
  try {
    const found = await read(connection, `${inNamespace(namespace)}/services/${encodeURIComponent(name)}`)
    if (found.status === 404) return { exists: false, causes: [] }
    if (!found.object) return { exists: true, causes: [`The Service cannot be read: ${found.problem}.`] }
    const notServed = whyNotServed(found.object, serviceProxyName)
    const spec = fields(found.object.spec)
    const causes = spec.type === 'ExternalName' ? [] : await causesInPods(connection, namespace, spec)
    return { exists: true, ...(notServed === undefined ? {} : { notServed }), causes }
  } catch (error) {
    return { exists: true, causes: [`The Service cannot be read: ${messageOf(error)}`] }
  }
}

async function causesInPods(connection: KubeConnection, namespace: string, spec: Fields): Promise<string[]> {
  const selector = fields(spec.selector)
  const text = Object.entries(selector)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(',')
  if (text === '')
    return ['It has no selector, so Kubernetes makes no EndpointSlices for it. Somebody must write them.']
  const found = await read(connection, `${inNamespace(namespace)}/pods`, { labelSelector: text, limit: mostPods })
  if (!found.object) return [`Its pods cannot be looked at: ${found.problem}.`]
  const pods = list(found.object.items)
  if (pods.length === 0) return [`Its selector (${text}) matches no pod in the namespace ${namespace}.`]
  return [...whyNotReady(pods, text), ...missingPortNames(pods, list(spec.ports))]
}

/** A sentence if none of the pods is ready. */
function whyNotReady(pods: readonly Fields[], selector: string): string[] {
  const isReady = (pod: Fields) =>
    list(fields(pod.status).conditions).some(({ type, status }) => type === 'Ready' && status === 'True')
  if (pods.some(isReady)) return []
  const examples = pods.slice(0, 3).map((pod) => `${String(fields(pod.metadata).name)}: ${stateOf(pod)}`)
  const rest = pods.length > 3 ? `, and ${pods.length - 3} more` : ''
  return [`No pod that its selector (${selector}) matches is ready (${examples.join(', ')}${rest}).`]
}

/** What kubectl shows in the column STATUS, as far as it helps. */
function stateOf({ metadata, status }: Fields): string {
  if (fields(metadata).deletionTimestamp !== undefined) return 'terminating'
  for (const container of list(fields(status).containerStatuses)) {
    const { waiting, terminated } = fields(container.state)
    const reason = fields(waiting).reason ?? fields(terminated).reason
    if (typeof reason === 'string') return reason
  }
  const { phase, reason } = fields(status)
  return typeof reason === 'string' ? reason : phase === 'Running' ? 'running, but not ready' : String(phase)
}

function missingPortNames(pods: readonly Fields[], ports: readonly Fields[]): string[] {
  const names = new Set(
    pods.flatMap((pod) =>
      list(fields(pod.spec).containers).flatMap((container) => list(container.ports).map((port) => String(port.name))),
    ),
  )
  const has = [...names].filter((name) => name !== 'undefined')
  return ports.flatMap(({ targetPort }) => {
    if (typeof targetPort !== 'string' || names.has(targetPort)) return []
    const known = has.length > 0 ? `Their ports are named ${has.join(', ')}` : 'Their ports have no names'
    return [`Its targetPort "${targetPort}" is a name that no container of its pods has. ${known}.`]
  })
}

interface Answer {
  readonly status: number
  readonly object?: Fields
  readonly problem: string
}

const inNamespace = (namespace: string): string => `/api/v1/namespaces/${encodeURIComponent(namespace)}`

/** Enough to see what is wrong with them. */
const mostPods = '100'
const maxAnswerBytes = 32 * 1024 * 1024

/** A refusal is an answer too. */
async function read(connection: KubeConnection, path: string, query: Record<string, string> = {}): Promise<Answer> {
  const { status, body } = await connection.request({ path, query })
  const object = fields(JSON.parse(await readBody(body, maxAnswerBytes)))
  if (status === 200) return { status, object, problem: '' }
  const problem =
    status === 403 ? 'kpng has no permission (get services, list pods)' : `the API server answered ${status}`
  return { status, problem }
}

const fields = (value: unknown): Fields => (isFields(value) ? value : {})

const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])
