import {
  type EndpointAnswer,
  type Explanation,
  endpointReasons,
  type FrontendAnswer,
  hostPort,
  messageOf,
  type RouteAnswer,
  type ServiceAnswer,
} from '@kpng/api'
import type { FrontendAddress, FrontendKind, HeldFrontend } from '@kpng/client'
import { endpointKey, type Frontend } from './frontend.js'
import type { FrontendTable } from './frontend-table.js'
import { heldAnswer, holderText } from './held-answer.js'
import { type Question, questionText } from './question.js'
import { type Client, type Connection, isMasqueraded, type Route, routeOf, routeThrough } from './route.js'

export interface ExplainOptions {
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
  /** Whether TCP sockets of this node's pods connect to the endpoint itself: see `BackendFeatures`. Default false. */
  readonly connectsSockets?: boolean
  /** Whose data plane `held` reads. Default: kpng's. */
  readonly heldBy?: string
  /** All addresses of this machine. Default: those of the Node object. */
  readonly ownAddresses?: readonly string[]
}

/** Says what this node does with connections to a Service, to an address or to a node port, and why. */
export async function explain(question: Question, options: ExplainOptions): Promise<Explanation> {
  const { table, nodeName } = options
  const frontends = frontendsFor(question, table)
  const path = question.kind === 'service' ? question.service : frontends[0]?.service
  const { service, coreProblem } = path === undefined ? {} : await askCore(path, options)
  const answers = await Promise.all(frontends.map((frontend) => frontendAnswer(frontend, options)))
  const routes = answers.flatMap((answer) => answer.routes)
  const differs = answers.some(({ held }) => held && !held.isRight)
  const works = routes.length > 0 && routes.every(({ outcome }) => outcome === 'endpoint') && !differs
  return {
    node: nodeName,
    question: questionText(question),
    answer: `${answerOf(question, answers, service, options)}${differs ? ` ${holderText(options.heldBy)} does not hold what it should.` : ''}`,
    works,
    frontends: answers,
    problems: path === undefined ? [] : table.problemsOf(path),
    ...(service ? { service } : {}),
    ...(coreProblem === undefined ? {} : { coreProblem }),
  }
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

function frontendsFor(question: Question, table: FrontendTable): readonly Frontend[] {
  switch (question.kind) {
    case 'service':
      return table.wantedBy(question.service).filter((frontend) => table.get(frontend.id) === frontend)
    case 'node-port':
      return [...table.all()].filter(
        ({ kind, port, protocol }) =>
          kind === 'nodePort' && port === question.port && (question.protocol ?? protocol) === protocol,
      )
    case 'address': {
      const on = [...table.all()].filter(({ address }) => address === question.ip)
      return on.filter(
        ({ port, protocol }) =>
          protocol === 'any' ||
          ((question.port ?? port) === port && (question.protocol ?? (question.port ? 'tcp' : protocol)) === protocol),
      )
    }
  }
}

async function frontendAnswer(frontend: Frontend, options: ExplainOptions): Promise<FrontendAnswer> {
  const { client, held, heldBy, flows } = options
  const clients = client ? [client] : clientsOf(frontend)
  const { id, kind, service, portName } = frontend
  return {
    ...{ id, service, portName },
    kind: kindTexts[kind],
    routes: clients.map((each) => routeAnswer(routeThrough(frontend, { client: each }), each, options)),
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

/** A pod that is not named is one of this node. */
const isPodHere = ({ kind, ip }: Client, { node }: FrontendTable): boolean =>
  kind === 'pod' && (ip === undefined || node.onNode.has(ip))

function routeAnswer(route: Route, client: Client, { table, connectsSockets }: ExplainOptions): RouteAnswer {
  const { frontend, endpoints, outcome } = route
  const from = client.ip ?? clientTexts[client.kind]
  if (!frontend || outcome !== 'endpoint') {
    return { from, outcome, endpoints: [], sentence: failureOf(route, from) }
  }
  const isDirect =
    connectsSockets && frontend.protocol === 'tcp' && !frontend.allowedSources && isPodHere(client, table)
  const masqueraded = isDirect
    ? 0
    : endpoints.filter((endpoint) => isMasqueraded(frontend, client, endpoint, table.node)).length
  const sees =
    masqueraded === endpoints.length
      ? "the node's address"
      : masqueraded === 0
        ? "the client's address"
        : "the client's address, or the node's if it is the client itself"
  const among = endpoints.length === 1 ? 'its only endpoint' : `one of ${endpoints.length} endpoints at random`
  return {
    from,
    outcome,
    endpoints: endpoints.map(endpointKey),
    sentence: `A connection from ${from} goes to ${among}. The endpoint sees ${sees}.`,
  }
}

const clientTexts: Readonly<Record<Client['kind'], string>> = {
  pod: 'a pod',
  node: 'this node',
  outside: 'outside the cluster',
}

function failureOf({ why, outcome, frontend }: Route, from: string): string {
  const becomes = `A connection from ${from} is ${outcome}`
  switch (why) {
    case 'no-local-endpoints':
      return `${becomes}: the traffic policy is Local, and no endpoint on this node serves it.`
    case 'source-not-allowed':
      return `${becomes}: loadBalancerSourceRanges allow only ${(frontend?.allowedSources ?? []).map(({ text }) => text).join(', ')}.`
    default:
      return `${becomes}: no endpoint serves it.`
  }
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
): string {
  if (answers.length === 0) return whyNothing(question, service, options)
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
function whyNothing(question: Question, service: ServiceAnswer | undefined, options: ExplainOptions): string {
  const { table, client = { kind: 'pod' }, ownAddresses } = options
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
      const route = routeOf(table, { client, to: ip, port, protocol }, ownAddresses)
      return whyNoService(route, { to: ip, port, protocol }, table)
    }
  }
}

function whyNoService({ why, frontend }: Route, to: Omit<Connection, 'client'>, table: FrontendTable): string {
  const where = `${hostPort(to.to, to.port)}/${to.protocol}`
  const { node } = table
  switch (why) {
    case 'no-such-port': {
      const on = [...table.all()].filter(({ address }) => address === to.to)
      const ports = on.map(({ port, protocol }) => `${port}/${protocol}`).join(', ')
      return `${to.to} is the cluster IP of ${on[0]?.service}, which has no port ${to.port}/${to.protocol}. It has ${ports}. Connections to other ports are refused.`
    }
    case 'unallocated':
      return `No Service has ${to.to}, which is in a range of cluster IPs. Connections to it are dropped.`
    case 'not-a-node-port-address':
      return `${to.port}/${to.protocol} is a node port, but not on ${to.to}. Node ports are open on ${Object.values(
        node.nodePortCidrs,
      )
        .flat()
        .map(({ text }) => text)
        .join(', ')}.`
    default:
      return frontend ? '' : `No Service has ${where}. kpng leaves such packets alone.`
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
