import {
  type EndpointAnswer,
  type Explanation,
  endpointReasons,
  type Family,
  type FrontendAnswer,
  families,
  hostPort,
  messageOf,
  type NodeCause,
  type RouteAnswer,
  type ServiceAnswer,
} from '@kpng/api'
import type { FrontendAddress, FrontendKind, HeldFrontend } from '@kpng/client'
import { endpointKey, type Frontend } from './frontend.js'
import type { FrontendTable } from './frontend-table.js'
import { heldAnswer, holderText } from './held-answer.js'
import { type Question, questionText } from './question.js'
import {
  allFeatures,
  type Client,
  type Connection,
  isMasqueraded,
  type Route,
  type RouteOptions,
  routeOf,
  routeThrough,
} from './route.js'

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
  }) => Promise<readonly NodeCause[]>
  /** Whose data plane `held` reads. Default: kpng's. */
  readonly heldBy?: string
}

/** Says what this node does with connections to a Service, to an address or to a node port, and why. */
export async function explain(question: Question, options: ExplainOptions): Promise<Explanation> {
  const { table, nodeName } = options
  const route = routeTo(question, options)
  const frontends = frontendsFor(question, table, route)
  const path = question.kind === 'service' ? question.service : frontends[0]?.service
  const { service, coreProblem } = path === undefined ? {} : await askCore(path, options)
  const answers = await Promise.all(frontends.map((frontend) => frontendAnswer(frontend, options)))
  const routes = answers.flatMap((answer) => answer.routes)
  const differs = answers.some(({ held }) => held && !held.isRight)
  const causesOnNode = await causesFor(frontends, answers, options)
  const isStopped = causesOnNode.some(({ stops }) => stops)
  const works = routes.length > 0 && routes.every(({ outcome }) => outcome === 'endpoint') && !differs && !isStopped
  return {
    node: nodeName,
    question: questionText(question),
    answer: [
      answerOf(question, answers, service, options, route),
      ...(differs ? [`${holderText(options.heldBy)} does not hold what it should.`] : []),
      ...(isStopped ? ['But something on this node stops the packets.'] : []),
    ].join(' '),
    works,
    frontends: answers,
    ...(route && frontends.length === 0 ? { outcome: route.outcome } : {}),
    problems: path === undefined ? [] : table.problemsOf(path).map(({ sentence }) => sentence),
    ...(causesOnNode.length > 0 ? { causesOnNode } : {}),
    ...(service ? { service } : {}),
    ...(coreProblem === undefined ? {} : { coreProblem }),
  }
}

/** Only where some connection would reach an endpoint: otherwise there is a better reason. */
async function causesFor(
  frontends: readonly Frontend[],
  answers: readonly FrontendAnswer[],
  { nodeCauses, client, features = allFeatures }: ExplainOptions,
): Promise<readonly NodeCause[]> {
  const reached = frontends.filter((_, index) => answers[index]?.routes.some(({ outcome }) => outcome === 'endpoint'))
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
): Promise<{ service?: ServiceAnswer | undefined; coreProblem?: string }> {
  try {
    return { service: await serviceAnswer(path) }
  } catch (error) {
    return { coreProblem: messageOf(error) }
  }
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
      return table.wantedBy(question.service).filter((frontend) => table.get(frontend.id) === frontend)
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

async function frontendAnswer(frontend: Frontend, options: ExplainOptions): Promise<FrontendAnswer> {
  const { client, held, heldBy, flows, features } = options
  const clients = client ? [client] : clientsOf(frontend)
  const { id, kind, protocol, service, portName } = frontend
  return {
    ...{ id, protocol, service, portName },
    kind: kindTexts[kind],
    routes: clients.map((each) => routeAnswer(routeThrough(frontend, { client: each }, features), each, options)),
    notes: notesOn(frontend),
    ...(held ? { held: heldAnswer(frontend, await held(frontend), heldBy) } : {}),
    ...given('flows', await flows?.(frontend)),
  }
}

const given = <Name extends string, T>(name: Name, value: T | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [key in Name]?: T }

const kindTexts: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'load-balancer IP',
  nodePort: 'node port',
}

/** Everybody inside gets the same. Clients from outside rarely reach cluster IPs. */
const clientsOf = ({ kind }: Frontend): Client[] =>
  kind === 'clusterIP' ? [{ kind: 'pod' }] : [{ kind: 'pod' }, { kind: 'outside' }]

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

function answerOf(
  question: Question,
  answers: readonly FrontendAnswer[],
  service: ServiceAnswer | undefined,
  options: ExplainOptions,
  route: Route | undefined,
): string {
  if (answers.length === 0) return whyNothing(question, service, options, route)
  const routes = answers.flatMap(({ routes }) => routes)
  const failing = routes.filter(({ outcome }) => outcome !== 'endpoint')
  const name = answers[0]?.service as string
  if (failing.length === 0) return `${name} is served on this node.`
  const why = service ? whyNoEndpoint(service.endpoints) : ''
  if (failing.length === routes.length) return `${name} does not answer on this node.${why}`
  return `${name} answers on this node, but not every client at every address.`
}

/** The reasons, with the number of endpoints that each concerns. */
function whyNoEndpoint(endpoints: readonly EndpointAnswer[]): string {
  if (endpoints.length === 0) return ' No EndpointSlice of it lists an endpoint.'
  const counts = new Map<string, number>()
  for (const { reason } of endpoints) {
    if (reason) counts.set(endpointReasons[reason], (counts.get(endpointReasons[reason]) ?? 0) + 1)
  }
  if (counts.size === 0) return ''
  const reasons = [...counts].map(([text, count]) => `${count} of ${endpoints.length}: ${text}`)
  return ` None of its endpoints is used (${reasons.join('; ')}).`
}

/** Why no frontend matches. */
function whyNothing(
  question: Question,
  service: ServiceAnswer | undefined,
  { table }: ExplainOptions,
  route: Route | undefined,
): string {
  switch (question.kind) {
    case 'service': {
      if (!service) return `This node has no Service ${question.service}.`
      if (service.notServed) return `${question.service} is not served: ${service.notServed}`
      if (service.isKnown) return `${question.service} has no address and port that kpng could serve.`
      const { nearest } = service
      const hint = nearest.length > 0 ? ` Did you mean ${nearest.join(' or ')}?` : ''
      return `There is no Service ${question.service}.${hint}`
    }
    case 'node-port': {
      const known = [...table.all()].filter(({ kind }) => kind === 'nodePort')
      return `No Service has the node port ${question.port}. ${nearestPorts(question.port, known)}`
    }
    case 'address': {
      const { ip, port = 0, protocol = 'tcp' } = question
      return route ? whyNoService(route, { to: ip, port, protocol }, table) : ''
    }
  }
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
