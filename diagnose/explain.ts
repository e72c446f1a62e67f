import {
  type Diagnosis,
  type EndpointAnswer,
  type Explanation,
  type Family,
  type Finding,
  type FrontendAnswer,
  families,
  hostPort,
  type KubernetesFacts,
  messageOf,
  type ProbeAnswer,
  parseIp,
  type RouteAnswer,
  type ServiceAnswer,
  schemaVersion,
  unsafeKindOf,
  verdicts,
} from '@kpng/api'
import type { FrontendAddress, FrontendKind, HeldFrontend } from '@kpng/client'
import {
  allFeatures,
  type Client,
  type Connection,
  endpointKey,
  type Frontend,
  type FrontendTable,
  isMasqueraded,
  isSupported,
  type Route,
  type RouteOptions,
  routeOf,
} from '@kpng/dataplane'
import { butOf, diagnose, type RoutedWay, reasonWords, routed, usedIps } from './diagnose.js'
import { type Facts, selectionOf, waysOf } from './facts.js'
import { byLevel, found, needsAction } from './findings.js'
import { heldAnswer } from './held.js'
import { kubernetesFindings } from './kubernetes.js'
import { type Question, questionText } from './question.js'

export interface ExplainOptions extends RouteOptions {
  /** What the node serves. */
  readonly table: FrontendTable
  /** The name of the node. */
  readonly nodeName: string
  /** Who asks. Undefined: pods, and clients from outside where they can ask. */
  readonly client?: Client | undefined
  /** What the core says about a Service, by `namespace/name`; undefined if there is no core to ask. Rejects if the core cannot answer. */
  readonly serviceAnswer: (service: string) => Promise<ServiceAnswer | undefined>
  /** Reads back what the data plane holds; see `Backend.held`. Without it, only what it should hold is said. */
  readonly held?: (frontend: FrontendAddress) => Promise<HeldFrontend | undefined>
  /** Counts the flows of a frontend that exist now, by endpoint. Undefined: they cannot be seen. */
  readonly flows?: (frontend: FrontendAddress) => Promise<FrontendAnswer['flows']>
  /** Looks for what on this node stops such connections, or may. Default: nobody looks. */
  readonly nodeCauses?: (traffic: {
    readonly families: readonly Family[]
    /** Whether the kernel forwards the packets. */
    readonly isForwarded: boolean
    /** Whether some endpoint is on another node. */
    readonly leavesNode: boolean
  }) => Promise<readonly Finding[]>
  /** Whose data plane `held` reads. Default: kpng's. */
  readonly heldBy?: string
}

/** Says what this node does with connections to a Service, to an address or to a node port, and why. */
export async function explain(asked: Question, options: ExplainOptions): Promise<Explanation> {
  const { table, nodeName } = options
  const question = atItsClusterIp(asked, table)
  const route = routeTo(question, options)
  const frontends = frontendsFor(question, table, route)
  const about = { schemaVersion, node: nodeName, question: questionText(asked) }
  const services =
    question.kind === 'service' ? [question.service] : [...new Set(frontends.map(({ service }) => service))]
  if (services.length === 0) {
    const diagnosis = withoutService(question, table, route)
    return { ...about, diagnosis, works: false, frontends: [], ...(route ? { outcome: route.outcome } : {}) }
  }
  const isAll = question.kind === 'service'
  const parts = await Promise.all(
    services.map((service) => partOf(service, isAll ? undefined : new Set(frontends.map(({ id }) => id)), options)),
  )
  const diagnosis = together(parts.map((part) => part.diagnosis))
  const [first] = parts
  return {
    ...about,
    diagnosis,
    works: worksAs(diagnosis),
    frontends: parts.flatMap((part) => part.frontends),
    ...(first?.answer ? { service: first.answer } : {}),
  }
}

const worksAs = ({ verdict, findings }: Diagnosis): boolean => verdict === 'serving' && !findings.some(needsAction)

/** What one Service has to do with the question. */
async function partOf(service: string, asked: ReadonlySet<string> | undefined, options: ExplainOptions) {
  const { table, client, features, held, heldBy } = options
  const { answer, coreProblem } = await askCore(service, options)
  const known = waysOf(table, service)
  const facts: Facts = {
    ...{ service, item: undefined, ways: known, problems: asked ? [] : table.problemsOf(service), client, features },
    ...(asked ? { asked } : {}),
    item: table.itemOf(service),
    selection: answer
      ? { value: selectionOf(answer) }
      : { unknown: coreProblem ?? 'there is no core that could be asked' },
    kubernetes: answer?.kubernetes ?? { unknown: 'the API server was not asked. Give explain a kubeconfig' },
  }
  const ways = routed(facts)
  const own = ways.filter(({ owner }) => owner === undefined)
  // What a data plane cannot serve, it does not have to hold.
  const holdable = own.filter(({ frontend }) => isSupported(frontend, features ?? allFeatures))
  const read =
    held &&
    new Map(
      await Promise.all(
        holdable.map(
          async ({ frontend }) => [frontend.id, heldAnswer(frontend, await held(frontend), heldBy)] as const,
        ),
      ),
    )
  const onNode = await causesFor(own, options)
  const all = { ...facts, onNode, ...(read ? { held: read } : {}) }
  return {
    diagnosis: diagnose(all, ways),
    answer: answer && withUses(answer, facts),
    frontends: await Promise.all(
      ways.map(async (way) => {
        const holds = read?.get(way.frontend.id)
        const flows = await options.flows?.(way.frontend)
        return { ...frontendAnswer(way, options), ...(holds ? { held: holds } : {}), ...(flows ? { flows } : {}) }
      }),
    ),
  }
}

/** Several Services may share an address, each with ports of its own. */
function together([first, ...others]: readonly Diagnosis[]): Diagnosis {
  const one = first as Diagnosis
  if (others.length === 0) return one
  const all = [one, ...others]
  const worst = Math.max(...all.map(({ verdict }) => verdicts.indexOf(verdict)))
  return {
    ...one,
    verdict: verdicts[worst] ?? 'unknown',
    headline: all.map(({ headline }) => headline).join(' '),
    findings: byLevel(all.flatMap(({ findings }) => findings)),
    unknown: all.flatMap(({ unknown }) => unknown),
  }
}

/** Only where some connection would reach an endpoint: otherwise there is a better reason. */
async function causesFor(
  ways: readonly RoutedWay[],
  { nodeCauses, client, features = allFeatures }: ExplainOptions,
): Promise<readonly Finding[]> {
  const reached = ways
    .filter(({ routes }) => routes.some(({ route }) => route.outcome === 'endpoint'))
    .map(({ frontend }) => frontend)
  if (!nodeCauses || reached.length === 0) return []
  return await nodeCauses({
    families: families.filter((family) => reached.some((frontend) => frontend.family === family)),
    // A process that carries the bytes itself keeps no source address.
    isForwarded: client?.kind !== 'node' && features.keepsSourceAddress,
    leavesNode: reached.some(({ inside, outside }) =>
      [inside, outside].some(({ endpoints }) => endpoints.some(({ isLocal }) => !isLocal)),
    ),
  })
}

/** A core that cannot be asked takes the reasons away, not the answer. */
async function askCore(
  path: string,
  { serviceAnswer }: ExplainOptions,
): Promise<{ answer?: ServiceAnswer | undefined; coreProblem?: string }> {
  try {
    return { answer: await serviceAnswer(path) }
  } catch (error) {
    return { coreProblem: messageOf(error) }
  }
}

/** What the core selected is not all: an endpoint is used only if some way of the Service that is served here leads to it. */
function withUses(answer: ServiceAnswer, facts: Facts): ServiceAnswer {
  const used = usedIps(facts)
  const { ways, features = allFeatures } = facts
  const served = ways.filter(({ frontend, owner }) => owner === undefined && isSupported(frontend, features))
  const whyNot = ({ ips }: EndpointAnswer): EndpointAnswer['reason'] => {
    if (served.length === 0) return 'not-served'
    if (ips.some((ip) => unsafeKindOf(ip))) return 'unusable-address'
    const isOfFamily = ips.some((ip) => served.some(({ frontend }) => frontend.family === parseIp(ip)?.family))
    return isOfFamily ? 'not-served' : 'other-family'
  }
  return {
    ...answer,
    endpoints: answer.endpoints.map((endpoint) => {
      const isUsed = endpoint.reason === undefined && (ways.length === 0 || endpoint.ips.some((ip) => used.has(ip)))
      if (isUsed) return endpoint
      const reason = endpoint.reason ?? whyNot(endpoint)
      return reason ? { ...endpoint, scopes: [], reason, why: reasonWords[reason] } : endpoint
    }),
  }
}

/** The same explanation with what the objects in Kubernetes say, for those who may read more than the one who explained. */
export function withKubernetes(explanation: Explanation, facts: KubernetesFacts): Explanation {
  const { diagnosis, service, frontends } = explanation
  const path = diagnosis.service
  if (path === '' || (service?.kubernetes && 'value' in service.kubernetes)) return explanation
  const selection = service ? { value: selectionOf(service) } : { unknown: 'the core could not be asked' }
  const kubernetes = { value: facts }
  const none: Facts = { service: path, item: undefined, ways: [], problems: [], selection, kubernetes }
  const again = diagnose(none, frontends.length === 0 ? undefined : [])
  const ofKubernetes = kubernetesFindings(path, facts, diagnosis.total)
  const others = diagnosis.findings.filter(({ code }) => !code.startsWith('KPNG-K'))
  const merged: Diagnosis =
    frontends.length === 0
      ? again
      : {
          ...diagnosis,
          headline: [diagnosis.headline, ...butOf(diagnosis.verdict, ofKubernetes)].join(' '),
          findings: byLevel([...others, ...ofKubernetes]),
          unknown: again.unknown,
        }
  return { ...explanation, diagnosis: merged, works: worksAs(merged) }
}

/** The same explanation with what TCP connections to the endpoints showed. */
export function withProbes(explanation: Explanation, probes: readonly ProbeAnswer[], leftOut: number): Explanation {
  const { diagnosis } = explanation
  const failed = probes.filter(({ result }) => result !== 'connected')
  const what =
    probes.length === 1
      ? 'The endpoint does not take a connection.'
      : `${failed.length} of ${probes.length} endpoints do not take a connection.`
  const [first] = failed
  const probed: Diagnosis = first
    ? {
        ...diagnosis,
        headline: `${diagnosis.headline} ${what}`,
        findings: byLevel([...diagnosis.findings, found('KPNG-D002', `${what} ${first.sentence}`)]),
      }
    : diagnosis
  return {
    ...explanation,
    diagnosis: probed,
    works: worksAs(probed),
    probes,
    ...(leftOut > 0 ? { probesLeftOut: leftOut } : {}),
  }
}

/** A name in DNS and a port are the Service's cluster IP and the port. */
function atItsClusterIp(question: Question, table: FrontendTable): Question {
  if (question.kind !== 'service' || question.port === undefined) return question
  const at = table.wantedBy(question.service).find(({ kind }) => kind === 'clusterIP')
  const { port, protocol } = question
  return at ? { kind: 'address', ip: at.address, port, ...(protocol ? { protocol } : {}) } : question
}

/** Where a connection to an address goes. Undefined if the question is not about one. */
function routeTo(question: Question, { table, client = { kind: 'pod' }, ...rest }: ExplainOptions): Route | undefined {
  if (question.kind !== 'address') return undefined
  const { ip, port = 0, protocol = 'tcp' } = question
  return routeOf(table, { client, to: ip, port, protocol }, rest)
}

function frontendsFor(question: Question, table: FrontendTable, route: Route | undefined): readonly Frontend[] {
  switch (question.kind) {
    case 'service':
      return table.wantedBy(question.service)
    case 'node-port':
      return [...table.all()].filter(
        ({ kind, port, protocol }) =>
          kind === 'nodePort' && port === question.port && (question.protocol ?? protocol) === protocol,
      )
    case 'address':
      if (question.port !== undefined) return route?.frontend ? [route.frontend] : []
      return [...table.all()].filter(({ address }) => address === question.ip)
  }
}

function frontendAnswer({ frontend, owner, routes }: RoutedWay, options: ExplainOptions): FrontendAnswer {
  const { id, kind, protocol, service, portName } = frontend
  return {
    ...{ id, protocol, service, portName },
    kind: kindTexts[kind],
    routes:
      owner === undefined ? routes.map(({ route, client }) => routeAnswer(route, client, options)) : [elsewhere(owner)],
    notes: owner === undefined ? notesOn(frontend) : [],
  }
}

const elsewhere = (owner: string): RouteAnswer => ({
  from: 'anybody',
  outcome: 'elsewhere',
  endpoints: [],
  sentence: `Connections go to ${owner.includes(' ') ? owner : `Service ${owner}`}.`,
})

const kindTexts: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load-balancer IP',
  nodePort: 'node port',
}

function routeAnswer(
  route: Route,
  client: Client,
  { table: { node }, features = allFeatures }: ExplainOptions,
): RouteAnswer {
  const { frontend, endpoints, outcome } = route
  const from = client.ip ?? clientTexts[client.kind]
  if (!frontend || outcome !== 'endpoint') {
    return { from, outcome, endpoints: [], sentence: failureOf(route, from) }
  }
  const masqueraded = endpoints.filter((endpoint) => isMasqueraded(frontend, client, endpoint, node, features)).length
  const endpointSees = masqueraded === endpoints.length ? 'node' : masqueraded === 0 ? 'client' : 'either'
  const among = endpoints.length === 1 ? 'its only endpoint' : `one of ${endpoints.length} endpoints at random`
  return {
    from,
    outcome,
    endpointSees,
    endpoints: endpoints.map(endpointKey),
    sentence: `A connection from ${from} goes to ${among}. The endpoint sees ${seenTexts[endpointSees]}.`,
  }
}

const seenTexts: Readonly<Record<NonNullable<RouteAnswer['endpointSees']>, string>> = {
  client: "the client's address",
  node: "the node's address",
  either: "the client's address, or the node's if it is the client itself",
}

const clientTexts: Readonly<Record<Client['kind'], string>> = {
  pod: 'a pod',
  node: 'this node',
  outside: 'outside the cluster',
}

function failureOf({ why, outcome, frontend }: Route, from: string): string {
  const becomes = `A connection from ${from} is ${outcomeTexts[outcome]}`
  switch (why) {
    case 'no-local-endpoints':
      return `${becomes}: the traffic policy is Local, and no endpoint on this node serves it.`
    case 'source-not-allowed':
      return `${becomes}: loadBalancerSourceRanges allow only ${(frontend?.allowedSources ?? []).map(({ text }) => text).join(', ')}.`
    case 'not-supported':
      return `${becomes}: this data plane does not serve ${frontend?.protocol === 'any' ? 'whole addresses' : frontend?.protocol.toUpperCase()}.`
    default:
      return `${becomes}: no endpoint serves it.`
  }
}

const outcomeTexts: Readonly<Record<Route['outcome'], string>> = {
  endpoint: 'served',
  refused: 'refused',
  dropped: 'dropped',
  reset: 'accepted and then reset',
  passed: 'left alone and routed on',
}

function notesOn({ sessionAffinitySeconds, allowedSources, draining }: Frontend): string[] {
  const notes: string[] = []
  if (sessionAffinitySeconds !== undefined) {
    notes.push(
      `Session affinity: a client stays with its endpoint until ${sessionAffinitySeconds} s after its last connection.`,
    )
  }
  if (allowedSources) {
    const ranges = allowedSources.map(({ text }) => text).join(', ')
    notes.push(
      ranges === '' ? 'No client may connect: no source range can be read.' : `Only clients in ${ranges} may connect.`,
    )
  }
  if (draining.length > 0) {
    notes.push(`${draining.map(endpointKey).join(', ')} get no new connections and keep the UDP flows that they have.`)
  }
  return notes
}

/** No Service has the address and port, or the node port. */
function withoutService(question: Question, table: FrontendTable, route: Route | undefined): Diagnosis {
  const headline = whyNothing(question, table, route)
  const verdict = route?.outcome === 'refused' ? 'refused' : route?.outcome === 'dropped' ? 'dropped' : 'absent'
  const finding = found('KPNG-S019', headline, { command: 'kubectl get services -A -o wide' })
  return { service: '', verdict, headline, reason: '', findings: [finding], used: 0, unknown: [] }
}

function whyNothing(question: Question, table: FrontendTable, route: Route | undefined): string {
  if (question.kind === 'address' && route) {
    const { ip, port = 0, protocol = 'tcp' } = question
    return whyNoService(route, { to: ip, port, protocol }, table)
  }
  const port = question.kind === 'node-port' ? question.port : 0
  const known = [...table.all()].filter(({ kind }) => kind === 'nodePort')
  return `No Service has the node port ${port}. ${nearestPorts(port, known)}`
}

function whyNoService({ why, outcome }: Route, to: Omit<Connection, 'client'>, table: FrontendTable): string {
  const { node } = table
  switch (why) {
    case 'no-such-port': {
      const on = [...table.all()].filter(({ address }) => address === to.to)
      const ports = on.map(({ port, protocol }) => `${port}/${protocol}`).join(', ')
      return `${to.to} is the cluster IP of ${on[0]?.service}, which has no port ${to.port}/${to.protocol}. It has ${ports}. Connections to other ports are ${outcomeTexts[outcome]}.`
    }
    case 'unallocated':
      return `No Service has ${to.to}, which is in a range of cluster IPs. Connections to it are ${outcomeTexts[outcome]}.`
    case 'not-a-node-port-address':
      return `${to.port}/${to.protocol} is a node port, but not on ${to.to}. Node ports are open on ${Object.values(
        node.nodePortCidrs,
      )
        .flat()
        .map(({ text }) => text)
        .join(', ')}.`
    default:
      return `No Service has ${to.port === 0 ? to.to : `${hostPort(to.to, to.port)}/${to.protocol}`}. kpng leaves such packets alone.`
  }
}

function nearestPorts(wanted: number, known: readonly Frontend[]): string {
  if (known.length === 0) return 'There are no node ports on this node.'
  const nearest = [...new Map(known.map((frontend) => [frontend.port, frontend])).values()]
    .sort((a, b) => Math.abs(a.port - wanted) - Math.abs(b.port - wanted))
    .slice(0, 3)
    .map(({ port, service }) => `${port} (${service})`)
  return `The nearest ${nearest.length === 1 ? 'is' : 'are'} ${nearest.join(', ')}.`
}
