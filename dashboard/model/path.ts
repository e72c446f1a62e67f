import type { EndpointAnswer, Explanation, FrontendAnswer, LiveService, RouteAnswer } from '@kpng/api'
import { type Address, addressOf } from './frontends.js'
import { addressWithPort } from './rows.js'

// What the picture of a path shows beside the sentences of the explanation: the facts that decide, and the endpoints with their reasons.

export interface Step {
  readonly title: string
  readonly text: string
  /** The step that ends at endpoints, or at none. */
  readonly isLast?: boolean
  /** The connection ends here. */
  readonly isStop?: boolean
}

/** @param service undefined while the list does not have it */
export function stepsOf(frontend: FrontendAnswer, route: RouteAnswer, service: LiveService | undefined): Step[] {
  const steps: Step[] = []
  if (service) {
    steps.push(policyStep(frontend, route, service))
    if (service.hints) steps.push(hintsStep(isLocalOnly(frontend, route, service)))
  }
  steps.push(...frontend.notes.map(noteStep))
  return [...steps, outcomeStep(route)]
}

/** Which traffic policy counts for a frontend. */
function policyOf({ kind }: FrontendAnswer, { internalTrafficPolicy, externalTrafficPolicy }: LiveService) {
  return kind.startsWith('cluster')
    ? ({ name: 'internalTrafficPolicy', value: internalTrafficPolicy, isInternal: true } as const)
    : ({ name: 'externalTrafficPolicy', value: externalTrafficPolicy, isInternal: false } as const)
}

/** Whether only endpoints on this node count. externalTrafficPolicy does not apply to clients inside the cluster. */
export function isLocalOnly(frontend: FrontendAnswer, { from }: RouteAnswer, service: LiveService): boolean {
  const { value, isInternal } = policyOf(frontend, service)
  return value === 'Local' && (isInternal || !(from === 'a pod' || from === 'this node'))
}

function policyStep(frontend: FrontendAnswer, route: RouteAnswer, service: LiveService): Step {
  const { name, value } = policyOf(frontend, service)
  const title = `${name}: ${value}`
  if (isLocalOnly(frontend, route, service)) return { title, text: 'only endpoints on this node' }
  if (value === 'Local') return { title, text: 'does not apply to clients inside the cluster' }
  return { title, text: 'endpoints anywhere in the cluster' }
}

const hintsStep = (localOnly: boolean): Step => ({
  title: 'topology hints',
  text: localOnly ? 'are not looked at where only this node counts' : 'choose among the endpoints of the cluster',
})

/** `Session affinity: a client stays …` has a title of its own. */
function noteStep(note: string): Step {
  const [, title, text] = /^([^.:]{3,40}): (.*)$/.exec(note) ?? []
  if (title !== undefined && text !== undefined) return { title: title.toLowerCase(), text }
  return { title: note.includes('may connect') ? 'source ranges' : 'also', text: note }
}

function outcomeStep({ outcome, endpoints, sentence }: RouteAnswer): Step {
  const count = endpoints.length
  switch (outcome) {
    case 'endpoint':
      return {
        title: count === 1 ? 'the only one' : `one of ${count}, at random`,
        // What comes after the choice, such as the address that the endpoint sees.
        text: secondSentence(sentence),
        isLast: true,
      }
    case 'passed':
      return { title: 'left alone', text: 'kpng does not change the packet', isLast: true, isStop: true }
    default:
      return { title: outcome, text: afterColon(sentence), isLast: true, isStop: true }
  }
}

const secondSentence = (text: string) => /\. (.+)$/.exec(text)?.[1] ?? ''
const afterColon = (text: string) => /: (.+)$/.exec(text)?.[1] ?? text

/** An endpoint in the picture. */
export interface PathEndpoint {
  /** `10.244.1.5:8080` */
  readonly address: string
  readonly pod: string
  readonly node: string
  readonly isLocal: boolean
  readonly isUsed: boolean
  /** Why it is not used on this path, in a few words. */
  readonly reason: string
  /** Existing connections to it, where they can be counted. */
  readonly flows: number | undefined
}

export interface Zone {
  /** Empty: nobody knows. */
  readonly name: string
  readonly isHere: boolean
  readonly endpoints: readonly PathEndpoint[]
  readonly usedCount: number
}

/** By zone, that of this node first; in each the used ones first. Without an answer of the core, only the used ones are known. */
export function zonesOf(
  { service }: Explanation,
  frontend: FrontendAnswer,
  route: RouteAnswer,
  localOnly = false,
): Zone[] {
  const address = addressOf(frontend)
  const flows = new Map(frontend.flows?.map(({ endpoint, count }) => [endpoint, count]))
  const byZone = new Map<string, PathEndpoint[]>()
  const add = (zone: string, endpoint: PathEndpoint) => byZone.set(zone, [...(byZone.get(zone) ?? []), endpoint])
  const unknown = new Set(route.endpoints)
  for (const endpoint of service?.endpoints ?? []) {
    const shown = pathEndpoint(endpoint, { ...address, localOnly }, route, unknown, flows)
    if (shown.isUsed) unknown.delete(shown.address)
    add(endpoint.zone, shown)
  }
  for (const used of unknown) {
    const flowCount = flows.get(used)
    add('', { address: used, pod: '', node: '', isLocal: false, isUsed: true, reason: '', flows: flowCount })
  }
  const here = new Set(service?.endpoints.filter(({ isLocal }) => isLocal).map(({ zone }) => zone))
  here.delete('')
  const rank = ({ isUsed, isLocal }: PathEndpoint) => (isUsed ? 0 : 2) + (isLocal ? 0 : 1)
  return [...byZone]
    .map(([name, endpoints]) => ({
      name,
      isHere: here.has(name),
      endpoints: endpoints.sort((a, b) => rank(a) - rank(b)),
      usedCount: endpoints.filter(({ isUsed }) => isUsed).length,
    }))
    .sort((a, b) => Number(b.isHere) - Number(a.isHere) || (a.name < b.name ? -1 : 1))
}

function pathEndpoint(
  endpoint: EndpointAnswer,
  frontend: Address & { readonly localOnly: boolean },
  route: RouteAnswer,
  unused: ReadonlySet<string>,
  flows: ReadonlyMap<string, number>,
): PathEndpoint {
  const { ips, ports, pod, node, isLocal, reason } = endpoint
  const ofFamily = ips.filter((ip) => ip.includes(':') === (frontend.family === 'IPv6'))
  const candidates = ofFamily.flatMap((ip) => [ip, ...ports.map((port) => addressWithPort(ip, port))])
  const used =
    reason === undefined ? route.endpoints.find((each) => unused.has(each) && candidates.includes(each)) : undefined
  const [ip = ips[0] ?? ''] = ofFamily
  const address = used ?? unusedAddress(ip, ports, route)
  return {
    ...{ address, pod, node, isLocal, isUsed: used !== undefined },
    reason: used === undefined ? whyNot(endpoint, ofFamily.length > 0, frontend) : '',
    flows: flows.get(address),
  }
}

/** With the port that it would be asked on: its only one, or that of the endpoints that are used. */
function unusedAddress(ip: string, ports: readonly number[], { endpoints: [used = ''] }: RouteAnswer): string {
  const likely = Number(/:(\d+)$/.exec(used)?.[1])
  const port = ports.length === 1 ? ports[0] : ports.find((each) => each === likely)
  return port === undefined ? ip : addressWithPort(ip, port)
}

function whyNot(
  { reason, why, isLocal, ready }: EndpointAnswer,
  hasFamily: boolean,
  { family, localOnly }: { readonly family: string; readonly localOnly: boolean },
): string {
  if (!hasFamily) return `no ${family} address`
  // Where only local endpoints count, hints are not looked at.
  if (localOnly && ready && !isLocal && (reason === undefined || reason.startsWith('hints'))) return 'on another node'
  return why ?? reason ?? 'not for this traffic'
}
