import {
  type Known,
  type KubernetesFacts,
  type KubernetesService,
  messageOf,
  type OtherPod,
  type PodFacts,
} from '@kpng/api'
import { type Fields, isFields } from '../../kubernetes/fields.js'
import { labelsOf } from '../../kubernetes/metadata.js'
import { whyNotServed } from '../../kubernetes/not-served.js'
import { listFiles, readText } from '../file/files.js'
import { readDocuments } from '../yaml.js'
import { type KubeConnection, readBody } from './client/index.js'

// What the objects in Kubernetes say about a Service beyond what a proxy watches. It only reads: @kpng/diagnose judges.

/** Objects as Kubernetes has them. */
export interface ServiceObjects {
  /** Undefined: there is no such Service. */
  readonly service: Fields | undefined
  /** Those that its selector matches. */
  readonly pods: Known<readonly Fields[]>
  /** Pods that the selector may have meant, if it matches none. */
  readonly otherPods: Known<readonly Fields[]>
  /** Of its namespace. */
  readonly networkPolicies: Known<readonly Fields[]>
}

/** Enough to see what is wrong with them. */
const mostPods = 100
const mostOtherPods = 500

/** @param from who said it */
export function kubernetesFacts(from: string, serviceProxyName: string, objects: ServiceObjects): KubernetesFacts {
  const { service } = objects
  const pods = mapKnown(objects.pods, (found) => found.slice(0, mostPods))
  return {
    from,
    ...(service ? { service: serviceFactsOf(service, serviceProxyName) } : {}),
    pods: mapKnown(pods, (found) => found.map(podFacts)),
    otherPods: mapKnown(objects.otherPods, labelledAlikeOnce),
    networkPolicies: mapKnown(objects.networkPolicies, (policies) => {
      const selected = 'value' in pods ? pods.value : []
      return policies.filter((policy) => selected.some((pod) => concerns(policy, pod))).map(nameOf)
    }),
  }
}

const mapKnown = <A, B>(known: Known<A>, change: (value: A) => B): Known<B> =>
  'value' in known ? { value: change(known.value) } : known

function serviceFactsOf(object: Fields, serviceProxyName: string): KubernetesService {
  const spec = fields(object.spec)
  const { ingress } = fields(fields(object.status).loadBalancer)
  const ips = Array.isArray(spec.clusterIPs) ? spec.clusterIPs : [spec.clusterIP]
  const notServed = whyNotServed(object, serviceProxyName)
  return {
    type: String(spec.type ?? 'ClusterIP'),
    clusterIps: ips.filter((ip): ip is string => typeof ip === 'string' && ip !== '' && ip !== 'None'),
    selector: texts(spec.selector),
    ports: list(spec.ports).map(({ name, port, protocol, targetPort }) => ({
      name: String(name ?? ''),
      port: Number(port),
      protocol: String(protocol ?? 'TCP'),
      targetPort: typeof targetPort === 'string' ? targetPort : Number(targetPort ?? port),
    })),
    publishNotReadyAddresses: spec.publishNotReadyAddresses === true,
    awaitsLoadBalancer: spec.type === 'LoadBalancer' && !(Array.isArray(ingress) && ingress.length > 0),
    ...(notServed === undefined ? {} : { notServed }),
  }
}

function podFacts(pod: Fields): PodFacts {
  const { status, spec } = pod
  const conditions = list(fields(status).conditions)
  const { containers, initContainers } = fields(spec)
  const sidecars = list(initContainers).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return {
    name: nameOf(pod),
    // A manifest has no status: nobody can say yet.
    isReady: status === undefined || conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    state: stateOf(pod),
    ports: [...list(containers), ...sidecars].flatMap((container) =>
      list(container.ports).map(({ name, containerPort, protocol }) => ({
        name: String(name ?? ''),
        number: Number(containerPort),
        protocol: String(protocol ?? 'TCP'),
      })),
    ),
  }
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

/** The pods of a Deployment have the same labels: one of them is enough. */
function labelledAlikeOnce(pods: readonly Fields[]): OtherPod[] {
  const found = new Map<string, OtherPod>()
  for (const pod of pods) {
    const [namespace, name, labels] = [namespaceOf(pod), nameOf(pod), texts(labelsOf(pod))]
    found.set(JSON.stringify([namespace, labels]), { namespace, name, labels })
    if (found.size === mostPods) break
  }
  return [...found.values()]
}

/** Whether a NetworkPolicy is about packets to a pod. */
function concerns({ spec }: Fields, pod: Fields): boolean {
  const { policyTypes, podSelector } = fields(spec)
  return !(Array.isArray(policyTypes) && !policyTypes.includes('Ingress')) && selects(fields(podSelector), pod)
}

function selects({ matchLabels, matchExpressions }: Fields, pod: Fields): boolean {
  const labels = labelsOf(pod)
  const isMet = ({ key, operator, values }: Fields): boolean => {
    const has = Object.hasOwn(labels, String(key))
    const isListed = has && Array.isArray(values) && values.includes(labels[String(key)])
    return { In: isListed, NotIn: !isListed, Exists: has, DoesNotExist: !has }[String(operator)] ?? false
  }
  return matchesAll(texts(matchLabels), pod) && list(matchExpressions).every(isMet)
}

const matchesAll = (wanted: Readonly<Record<string, string>>, pod: Fields): boolean =>
  Object.entries(wanted).every(([key, value]) => labelsOf(pod)[key] === value)

/** Many objects at once, such as those of a file. */
export class ObjectSet {
  readonly #services: ReadonlyMap<string, Fields>
  readonly #pods: Known<ReadonlyMap<string, readonly Fields[]>>
  readonly #policies: Known<ReadonlyMap<string, readonly Fields[]>>

  constructor(services: readonly Fields[], pods: Known<readonly Fields[]>, networkPolicies: Known<readonly Fields[]>) {
    this.#services = new Map(services.map((service) => [`${namespaceOf(service)}/${nameOf(service)}`, service]))
    this.#pods = mapKnown(pods, byNamespace)
    this.#policies = mapKnown(networkPolicies, byNamespace)
  }

  /** Whether pods could be read. */
  get pods(): Known<true> {
    return mapKnown(this.#pods, () => true)
  }

  get services(): Iterable<Fields> {
    return this.#services.values()
  }

  /** @param path `namespace/name` */
  objectsOf(path: string): ServiceObjects {
    const [namespace = ''] = path.split('/')
    const service = this.#services.get(path)
    const selector = texts(fields(service?.spec).selector)
    const isSelected = (pod: Fields) => Object.keys(selector).length > 0 && matchesAll(selector, pod)
    const pods = mapKnown(this.#pods, (all) => (all.get(namespace) ?? []).filter(isSelected))
    const none = 'value' in pods && pods.value.length === 0
    return {
      service,
      pods,
      otherPods: mapKnown(this.#pods, (all) =>
        none ? [...(all.get(namespace) ?? []), ...[...all.values()].flat().filter(isSelected)] : [],
      ),
      networkPolicies: mapKnown(this.#policies, (all) => all.get(namespace) ?? []),
    }
  }
}

function byNamespace(objects: readonly Fields[]): Map<string, Fields[]> {
  const found = new Map<string, Fields[]>()
  for (const object of objects) found.set(namespaceOf(object), [...(found.get(namespaceOf(object)) ?? []), object])
  return found
}

/** The objects of a file or a folder of manifests. Undefined: it has none, because it is a state file. */
export async function readObjects(path: string): Promise<ObjectSet | undefined> {
  const objects: Fields[] = []
  for (const file of (await listFiles(path)).keys()) {
    const text = await readText(file)
    for (const document of readDocuments(file, text)) objects.push(...objectsIn(document))
  }
  if (objects.length === 0) return undefined
  const pods = objects.flatMap(podsOf)
  const ofKind = (wanted: string) => objects.filter(({ kind }) => kind === wanted)
  return new ObjectSet(
    ofKind('Service'),
    pods.length > 0 ? { value: pods } : { unknown: `${path} has neither pods nor workloads` },
    { value: ofKind('NetworkPolicy') },
  )
}

const objectsIn = (document: unknown): Fields[] => {
  if (!isFields(document) || typeof document.kind !== 'string') return []
  const { kind, items } = document
  if (!kind.endsWith('List') || !Array.isArray(items)) return [document]
  return items.filter(isFields).map((item) => (kind === 'List' ? item : { kind: kind.slice(0, -4), ...item }))
}

/** A pod, or the one that a workload makes. */
function podsOf(object: Fields): Fields[] {
  if (object.kind === 'Pod') return [object]
  const { template } = fields(object.spec)
  if (!isFields(template)) return []
  const name = `${String(object.kind).toLowerCase()}/${nameOf(object)}`
  return [{ ...template, metadata: { ...fields(template.metadata), name, namespace: namespaceOf(object) } }]
}

/** Asks the API server about a Service and its pods. Never rejects. */
export async function inspectService(
  connection: KubeConnection,
  namespace: string,
  name: string,
  serviceProxyName = '',
): Promise<Known<KubernetesFacts>> {
  const core = `/api/v1/namespaces/${encodeURIComponent(namespace)}`
  const networking = `/apis/networking.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}`
  const from = `the API server ${connection.server}`
  try {
    const found = await read(connection, `${core}/services/${encodeURIComponent(name)}`)
    if (found.status !== 200 && found.status !== 404) return { unknown: whyUnread(found.status, '', 'services', 'get') }
    const service = found.status === 200 ? found.object : undefined
    const labelSelector = Object.entries(texts(fields(service?.spec).selector))
      .map(([key, value]) => `${key}=${value}`)
      .join(',')
    const nothing = { value: [] }
    if (!service || labelSelector === '') {
      const none = { service, pods: nothing, otherPods: nothing, networkPolicies: nothing }
      return { value: kubernetesFacts(from, serviceProxyName, none) }
    }
    const [pods, networkPolicies] = await Promise.all([
      readList(connection, `${core}/pods`, 'pods', { labelSelector, limit: String(mostPods) }),
      readList(connection, `${networking}/networkpolicies`, 'networkpolicies', {}, 'networking.k8s.io'),
    ])
    const isMissing = 'value' in pods && pods.value.length === 0
    const [here, elsewhere] = isMissing
      ? await Promise.all([
          readList(connection, `${core}/pods`, 'pods', { limit: String(mostOtherPods) }),
          readList(connection, '/api/v1/pods', 'pods', { labelSelector, limit: String(mostPods) }),
        ])
      : [nothing, nothing]
    const others = [here, elsewhere].flatMap((each) => ('value' in each ? each.value : []))
    const objects = { service, pods, otherPods: { value: others }, networkPolicies }
    return { value: kubernetesFacts(from, serviceProxyName, objects) }
  } catch (error) {
    return { unknown: `${from} cannot be asked: ${messageOf(error)}` }
  }
}

const maxAnswerBytes = 32 * 1024 * 1024

async function readList(
  connection: KubeConnection,
  path: string,
  resource: string,
  query: Record<string, string>,
  group = '',
): Promise<Known<readonly Fields[]>> {
  const { status, object } = await read(connection, path, query)
  // A server without the resource has no such objects.
  if (status === 404) return { value: [] }
  return status === 200 ? { value: list(object?.items) } : { unknown: whyUnread(status, group, resource, 'list') }
}

/** Why an answer is missing, with the right that would allow it. */
export const whyUnread = (status: number, group: string, resource: string, verb: string): string =>
  status === 403
    ? `there is no right to ${verb} ${resource}. This rule of a ClusterRole gives it: { apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"] }`
    : `the API server answered ${status} to ${verb} ${resource}`

/** A refusal is an answer too. */
async function read(connection: KubeConnection, path: string, query: Record<string, string> = {}) {
  const { status, body } = await connection.request({ path, query })
  const text = await readBody(body, maxAnswerBytes)
  return { status, object: status === 200 ? fields(JSON.parse(text)) : undefined }
}

const fields = (value: unknown): Fields => (isFields(value) ? value : {})

const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])

const texts = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(fields(value)).map(([key, text]) => [key, String(text)]))

const nameOf = (object: Fields): string => String(fields(object.metadata).name)

const namespaceOf = (object: Fields): string => String(fields(object.metadata).namespace ?? 'default')
