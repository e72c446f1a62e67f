import {
  type Diagnosis,
  type EndpointReason,
  endpointReasons,
  type Family,
  type Finding,
  families,
  ipsOf,
  type Verdict,
} from '@kpng/api'
import {
  allFeatures,
  type Client,
  type Frontend,
  type FrontendTable,
  isSupported,
  type Route,
  routeThrough,
} from '@kpng/dataplane'
import { type Facts, type SelectionFacts, type Way, waysOf } from './facts.js'
import { byLevel, counted, found, namesOf, needsAction } from './findings.js'
import { kubernetesFindings, whatIsUnknown } from './kubernetes.js'

/** A way into a Service, and what each kind of client gets there. */
export interface RoutedWay extends Way {
  /** Empty if another Service has the address. */
  readonly routes: readonly { readonly client: Client; readonly route: Route }[]
}

/** Everybody inside gets the same. Clients from outside rarely reach cluster IPs. */
const clientsOf = ({ kind }: Frontend): Client[] =>
  kind === 'clusterIP' ? [{ kind: 'pod' }] : [{ kind: 'pod' }, { kind: 'outside' }]

/** Where the connections of those who were asked about go. */
export const routed = ({ ways, asked, client, features = allFeatures }: Facts): RoutedWay[] =>
  ways.flatMap((way) => {
    if (asked && !asked.has(way.frontend.id)) return []
    if (way.owner !== undefined) return { ...way, routes: [] }
    const clients = client ? [client] : clientsOf(way.frontend)
    return {
      ...way,
      routes: clients.map((each) => ({ client: each, route: routeThrough(way.frontend, { client: each }, features) })),
    }
  })

/** A finding, and the clause for the headline that follows "because". */
interface Reason {
  readonly because: string
  readonly finding: Finding
}

/** What is wrong with a Service on a node, if anything. Pure: the same facts always give the same diagnosis. */
export function diagnose(facts: Facts, ways: readonly RoutedWay[] = routed(facts)): Diagnosis {
  const { service, kubernetes, onNode = [], selection } = facts
  const reasons = ways.length === 0 ? whyNothingIsServed(facts) : reasonsOf(facts, ways)
  const planned = verdictOf(facts, ways, reasons)
  const differs = whatDiffers(facts)
  const because = reasons[0]?.because ?? ''
  const ofCore = 'value' in selection && selection.value.isKnown ? selection.value : undefined
  const ofKubernetes = 'value' in kubernetes ? kubernetesFindings(service, kubernetes.value, ofCore?.total) : []
  const isStopped = onNode.some(({ level }) => level === 'problem')
  return {
    service,
    verdict: differs ? 'differs' : planned,
    headline: [
      headlineOf(facts, planned, because),
      ...(differs ? [`${asSubject(differs.because)}.`] : []),
      ...(isStopped ? ['But something on this node stops the packets.'] : []),
      ...butOf(planned, ofKubernetes),
    ].join(' '),
    reason: differs?.because ?? because,
    findings: byLevel([
      ...(differs ? [differs.finding] : []),
      ...reasons.map(({ finding }) => finding),
      ...onNode,
      ...ofKubernetes,
    ]),
    used: usedEndpoints(facts),
    ...(ofCore ? { total: ofCore.total } : {}),
    unknown: whatIsUnknown(facts),
  }
}

/** Every connection reaches an endpoint, and yet the objects are not as they should be: the headline must not sound as if all were well. */
export function butOf(verdict: Verdict, ofKubernetes: readonly Finding[]): string[] {
  const [first] = verdict === 'serving' || verdict === 'draining' ? ofKubernetes.filter(needsAction) : []
  return first ? [`But ${first.what.charAt(0).toLowerCase()}${first.what.slice(1)}`] : []
}

/** The diagnosis of a Service of a table, as everybody who may ask gets it. */
export const diagnoseIn = (
  table: FrontendTable,
  service: string,
  more: Omit<Facts, 'service' | 'item' | 'ways' | 'problems'>,
): Diagnosis =>
  diagnose({
    ...{ service, item: table.itemOf(service), ways: waysOf(table, service), problems: table.problemsOf(service) },
    ...more,
  })

/** What becomes of the connections of those who were asked about, one result per way and client. */
type Result = Route['outcome'] | 'owned'

const resultsOf = ({ ofCluster }: Facts, ways: readonly RoutedWay[]): Result[] =>
  ways.flatMap(({ owner, routes }): Result[] =>
    owner === undefined
      ? routes.map(({ route }) => (ofCluster && isElsewhere(route) ? 'endpoint' : route.outcome))
      : ['owned'],
  )

/** Other nodes serve it. */
const isElsewhere = ({ why }: Route): boolean => why === 'no-local-endpoints'

function verdictOf(facts: Facts, ways: readonly RoutedWay[], reasons: readonly Reason[]): Verdict {
  if (ways.length === 0) return verdictOfNothing(reasons)
  const results = resultsOf(facts, ways)
  const failing = results.filter((result) => result !== 'endpoint')
  if (failing.length === 0) return reasons.some(({ finding }) => finding.code === 'KPNG-S014') ? 'draining' : 'serving'
  if (failing.every((result) => result === 'dropped' || result === 'reset')) return 'dropped'
  if (failing.length < results.length) return 'partly'
  return failing.every((result) => result === 'passed' || result === 'owned') ? 'notServedHere' : 'refused'
}

function verdictOfNothing([first]: readonly Reason[]): Verdict {
  const code = first?.finding.code
  return code === 'KPNG-S016' ? 'absent' : code === 'KPNG-S017' ? 'unknown' : 'notServedHere'
}

function headlineOf({ service, ofCluster }: Facts, verdict: Verdict, because: string): string {
  const here = ofCluster ? '' : ' on this node'
  const why = because === '' ? '' : `: ${because}`
  switch (verdict) {
    case 'serving':
      return `${service} is served${here}${because === '' ? '' : `; ${because}`}.`
    case 'draining':
      return `${service} is served${here}, but ${because}.`
    case 'partly':
      return `${service} answers only in part${why}.`
    case 'dropped':
      return `${service} drops connections${here}${why}.`
    case 'refused':
      return `${service} does not answer${here}${why}.`
    case 'notServedHere':
      return `${service} is not served by this kpng${why}.`
    default:
      return because
  }
}

/** Why no way leads to the Service. */
function whyNothingIsServed({ service, selection, kubernetes }: Facts): Reason[] {
  const [namespace, name] = namesOf(service)
  const command = `kubectl -n ${namespace} get service ${name} -o yaml`
  const core = 'value' in selection ? selection.value : undefined
  const objects = 'value' in kubernetes ? kubernetes.value : undefined
  const nearest = core?.nearest ?? []
  if (objects?.service?.notServed !== undefined) {
    const because = objects.service.notServed.replace(/\.$/, '')
    return [{ because, finding: found('KPNG-S015', `${service} is not served: ${because}.`, { command }) }]
  }
  if (core?.isKnown || objects?.service) {
    const because = 'it has no address and port that kpng could serve'
    return [{ because, finding: found('KPNG-S018', `${service}: ${because}.`, { command }) }]
  }
  const list = `kubectl get services -A --field-selector metadata.name=${name}`
  if (objects) {
    const hint = nearest.length > 0 ? ` Did you mean ${nearest.join(' or ')}?` : ''
    const because = `There is no Service ${service}.${hint}`
    return [{ because, finding: found('KPNG-S016', because, { command: list }) }]
  }
  const similar = nearest.length > 0 ? ` It serves ${nearest.join(' and ')}.` : ''
  const because = `This kpng serves no Service ${service}. Either there is none, or it is headless, an ExternalName, for another proxy, or without a cluster IP.${similar}`
  return [{ because, finding: found('KPNG-S017', because, { command }) }]
}

/** What is not as its author wants, the most important first. */
function reasonsOf(facts: Facts, ways: readonly RoutedWay[]): Reason[] {
  return [
    ...deadPorts(facts, ways),
    ...ownedAddresses(facts, ways),
    ...unsupported(facts, ways),
    ...droppedHere(facts, ways),
    ...leftOutParts(facts, ways),
    ...endpointsAtRest(facts, ways),
  ]
}

/** What the data plane holds, if that is not what it should. */
function whatDiffers({ held, differs, service }: Facts): Reason | undefined {
  const wrong = [...(held?.values() ?? [])].filter(({ isRight }) => !isRight)
  if (wrong.length === 0 && !differs) return undefined
  const because = `${wrong[0]?.holder ?? 'the data plane'} does not hold what it should`
  const [first, ...others] = wrong.flatMap((each) => each.differences)
  const more = others.length - 4
  const what = [`${asSubject(because)} for ${service}.`, ...(first === undefined ? [] : [first])].join(' ')
  const examples = others.length === 0 ? {} : { examples: others.slice(0, 4), ...(more > 0 ? { more } : {}) }
  return { because, finding: found('KPNG-D001', what, { ...examples, command: 'kpng get changes' }) }
}

/** Ways that refuse because no endpoint serves them, port by port. */
function deadPorts(facts: Facts, ways: readonly RoutedWay[]): Reason[] {
  const dead = ways.filter(({ routes }) => routes.some(({ route }) => route.why === 'no-endpoints'))
  if (dead.length === 0) return []
  const byPort = new Map<string, RoutedWay[]>()
  for (const way of dead) byPort.set(portText(way.frontend), [...(byPort.get(portText(way.frontend)) ?? []), way])
  const reasons = [...byPort].map(([port, failing]) => whyDead(facts, port, failing, dead.length === ways.length))
  // One cause for all of them is one finding.
  const first = reasons[0] as Reason
  return reasons.every(({ because }) => because === first.because) ? [first] : reasons
}

/** `port http (80/tcp)`, `port 80/tcp`; node ports and cluster IPs of one port of a Service have the same. */
function portText({ portName, port, protocol, kind }: Frontend): string {
  if (protocol === 'any') return 'the address'
  if (portName !== '') return `port ${portName}`
  return kind === 'nodePort' ? `node port ${port}/${protocol}` : `port ${port}/${protocol}`
}

function whyDead(facts: Facts, port: string, failing: readonly RoutedWay[], isWhole: boolean): Reason {
  const { service, item, selection, problems } = facts
  const [namespace, name] = namesOf(service)
  const slices = `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name}`
  const core = 'value' in selection && selection.value.isKnown ? selection.value : undefined
  const what = isWhole ? 'Nothing answers' : `${capital(port)} is refused`
  const reason = (code: Parameters<typeof found>[0], because: string, command = slices): Reason => ({
    because,
    finding: found(code, `${what}: ${because}.`, { command }),
  })
  if (core?.total === 0) return reason('KPNG-S002', noEndpoint)
  const left = core && whyLeftOut(core)
  if (left) return reason(left.code, left.because, left.code === 'KPNG-S003' ? `${slices} -o yaml` : slices)
  const endpoints = item?.endpoints ?? []
  if (endpoints.length === 0) {
    return core
      ? reason('KPNG-S005', 'none of its endpoints can be used')
      : reason('KPNG-S001', 'no endpoint serves it')
  }
  const without = families.filter(
    (family) =>
      failing.some(({ frontend }) => frontend.family === family) &&
      endpoints.every(({ ips }) => ipsOf(ips, family).length === 0),
  )
  if (without.length > 0 && failing.every(({ frontend }) => without.includes(frontend.family))) {
    return reason('KPNG-S007', `${ofThem(endpoints.length, 'has', 'have')} an ${without.join(' or an ')} address`)
  }
  const unsafe = problems.find(({ kind }) => kind.endsWith('-endpoint'))
  if (unsafe && isWhole) return reason('KPNG-S006', unsafe.sentence)
  return reason('KPNG-S004', `${ofThem(endpoints.length, 'serves', 'serve')} ${port}: names or protocols differ`)
}

/** `none of its 3 endpoints is`, `its only endpoint is not`: the verb that follows says what they lack. */
function ofThem(count: number, one: string, many: string): string {
  if (count > 1) return `none of its ${count} endpoints ${one}`
  const infinitive = many === 'have' || many === 'serve' ? `does not ${many}` : `${one} not`
  return `its only endpoint ${infinitive}`
}

/** In one clause, why nothing of a Service's endpoints is used. Undefined: something is, or was again by the time of the question. */
export const whyNoneIsUsed = (selection: SelectionFacts): string | undefined =>
  selection.total === 0 ? noEndpoint : whyLeftOut(selection)?.because

const noEndpoint = 'no EndpointSlice of it lists an endpoint'

/** One clause if no endpoint is used at all. */
function whyLeftOut({
  total,
  leftOut,
}: SelectionFacts): { code: 'KPNG-S003' | 'KPNG-S004' | 'KPNG-S005'; because: string } | undefined {
  const counts = Object.entries(leftOut) as [EndpointReason, number][]
  if (counts.reduce((sum, [, count]) => sum + count, 0) < total) return undefined
  const [[first] = []] = counts
  if (counts.length === 1 && first === 'not-ready') {
    return {
      code: 'KPNG-S003',
      because: total === 1 ? 'its only endpoint is not ready' : `none of its ${total} endpoints is ready`,
    }
  }
  if (counts.length === 1 && first === 'no-port') {
    return { code: 'KPNG-S004', because: `${ofThem(total, 'serves', 'serve')} its ports: names or protocols differ` }
  }
  const list = counts.map(([reason, count]) => `${count} of ${total}: ${endpointReasons[reason]}`)
  return { code: 'KPNG-S005', because: `none of its endpoints is used (${list.join('; ')})` }
}

function ownedAddresses({ service }: Facts, ways: readonly RoutedWay[]): Reason[] {
  return ways.flatMap(({ frontend, owner }): Reason[] => {
    if (owner === undefined) return []
    const because = `${frontend.id} belongs to ${owner.includes('/') ? `Service ${owner}` : owner}`
    const command = `kubectl get services -A -o custom-columns='NS:.metadata.namespace,NAME:.metadata.name,EXTERNAL:.spec.externalIPs,PORTS:.spec.ports[*].port'`
    return [{ because, finding: found('KPNG-S010', `${service} does not get its address: ${because}.`, { command }) }]
  })
}

function unsupported({ service }: Facts, ways: readonly RoutedWay[]): Reason[] {
  const left = ways.filter(({ routes }) => routes.some(({ route }) => route.why === 'not-supported'))
  const kinds = [...new Set(left.map(({ frontend }) => frontend.protocol))]
  return kinds.map((protocol) => {
    const what = protocol === 'any' ? 'whole addresses' : protocol.toUpperCase()
    const because = `this data plane does not serve ${what}`
    return {
      because,
      finding: found('KPNG-S011', `${service} asks for ${what}, and ${because}.`, { command: 'kpng status' }),
    }
  })
}

/** Connections that this node drops, as the Service asks for. */
function droppedHere({ service, ofCluster }: Facts, ways: readonly RoutedWay[]): Reason[] {
  const [namespace, name] = namesOf(service)
  const whys = ways.flatMap(({ frontend, routes }) => routes.map(({ route }) => ({ why: route.why, frontend })))
  const reasons: Reason[] = []
  for (const [policy, isInternal] of [
    ['internalTrafficPolicy', true],
    ['externalTrafficPolicy', false],
  ] as const) {
    const isHit = whys.some(
      ({ why, frontend }) => why === 'no-local-endpoints' && (frontend.kind === 'clusterIP') === isInternal,
    )
    if (!isHit || ofCluster) continue
    const because = `${policy} is Local, and no endpoint on this node serves it`
    const command = `kubectl -n ${namespace} patch service ${name} -p '{"spec":{"${policy}":"Cluster"}}'`
    const todo = isInternal ? { todo: 'Run a pod on this node, or set the policy to Cluster.' } : {}
    const who = isInternal ? 'Connections to its cluster IPs' : 'Connections from outside the cluster'
    reasons.push({ because, finding: found('KPNG-S008', `${who} are dropped here: ${because}.`, { command, ...todo }) })
  }
  if (whys.some(({ why }) => why === 'source-not-allowed')) {
    const ranges = [...new Set(whys.flatMap(({ frontend }) => frontend.allowedSources?.map(({ text }) => text) ?? []))]
    const because =
      ranges.length === 0 ? 'no source range can be read' : `loadBalancerSourceRanges allow only ${ranges.join(', ')}`
    const command = `kubectl -n ${namespace} get service ${name} -o jsonpath='{.spec.loadBalancerSourceRanges}'`
    reasons.push({ because, finding: found('KPNG-S009', `The client may not connect: ${because}.`, { command }) })
  }
  return reasons
}

/** What the data plane leaves out of the Service, beside what was said already. */
function leftOutParts({ problems, service }: Facts, ways: readonly RoutedWay[]): Reason[] {
  const [namespace, name] = namesOf(service)
  const command = `kubectl -n ${namespace} get service ${name} -o yaml`
  const isDead = ways.every(({ routes }) => routes.every(({ route }) => route.why === 'no-endpoints'))
  return problems
    .filter(({ kind }) => kind !== 'conflict' && !(isDead && kind.endsWith('-endpoint')))
    .map(({ sentence }) => ({ because: sentence, finding: found('KPNG-S012', `${capital(sentence)}.`, { command }) }))
}

/** The name of a proxy begins with a small letter, also at the start of a sentence. */
const asSubject = (text: string): string => text.replace(/^the /, 'The ')

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const atRest: readonly EndpointReason[] = ['not-ready', 'terminating', 'no-port']

/** Endpoints that get no connections while others do. Those left out for other reasons, such as hints, are as they should be. */
function endpointsAtRest({ selection, service }: Facts, ways: readonly RoutedWay[]): Reason[] {
  if (!('value' in selection) || !ways.some(({ routes }) => routes.some(({ route }) => route.outcome === 'endpoint')))
    return []
  const { total, leftOut, onlyStandIns } = selection.value
  const [namespace, name] = namesOf(service)
  const command = `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name} -o yaml`
  if (onlyStandIns) {
    const because = 'only terminating endpoints are left'
    return [{ because, finding: found('KPNG-S014', `${capital(because)}.`, { command }) }]
  }
  const counts = atRest.flatMap((reason) => (leftOut[reason] ? [`${leftOut[reason]} ${reasonWords[reason]}`] : []))
  if (counts.length === 0) return []
  const because = `${counts.join(', ')} of ${counted(total, 'endpoint')}`
  return [{ because, finding: found('KPNG-S013', `${capital(because)} get no connections.`, { command }) }]
}

/** In a few words, why an endpoint is not used. */
export const reasonWords: Readonly<Record<EndpointReason, string>> = {
  'not-ready': 'not ready',
  terminating: 'terminating',
  'hints-other-node': 'hinted to other nodes',
  'hints-other-zone': 'hinted to another zone',
  'not-local': 'on another node',
  duplicate: 'duplicate',
  'no-port': 'without its ports',
  'other-family': 'of another family',
  'unusable-address': 'at an address that must not be used',
  'not-served': 'not served here',
}

/** Endpoints that get connections. In the cluster as a whole: those that some node may use. */
function usedEndpoints(facts: Facts): number {
  const { item, ofCluster, selection } = facts
  if (ofCluster && 'value' in selection) {
    const { total, leftOut } = selection.value
    const never = [...atRest, 'duplicate' as const].reduce((sum, reason) => sum + (leftOut[reason] ?? 0), 0)
    return total - never
  }
  const used = usedIps(facts)
  const isUsed = (family: Family, ips: Parameters<typeof ipsOf>[0]) => ipsOf(ips, family).some((ip) => used.has(ip))
  return item?.endpoints.filter(({ ips }) => families.some((family) => isUsed(family, ips))).length ?? 0
}

/** The addresses of endpoints that get connections from any client. */
export function usedIps({ ways, features = allFeatures }: Pick<Facts, 'ways' | 'features'>): ReadonlySet<string> {
  const served = ways.filter(({ frontend, owner }) => owner === undefined && isSupported(frontend, features))
  // Ways that are served by the same endpoints share one list.
  const lists = new Set(served.flatMap(({ frontend }) => [frontend.inside.endpoints, frontend.outside.endpoints]))
  const ips = new Set<string>()
  for (const list of lists) for (const { ip } of list) ips.add(ip)
  return ips
}
