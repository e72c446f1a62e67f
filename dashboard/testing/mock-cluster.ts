import type { EndpointReason, EndpointScope, LiveService, Verdict } from '@kpng/api'

// A cluster that does not exist, for tests, measurements and screenshots: the same each time. Which endpoints a node uses follows docs/which-endpoints.md.

export const here = { node: 'worker-17', zone: 'eu-1b' }

export interface MockEndpoint {
  readonly ips: readonly string[]
  readonly pod: string
  readonly node: string
  readonly zone: string
  ready: boolean
  serving: boolean
  terminating: boolean
  readonly isDuplicate: boolean
}

export interface MockPort {
  readonly name: string
  readonly protocol: 'tcp' | 'udp'
  readonly port: number
  readonly targetPort: number
  /** 0: none. */
  readonly nodePort: number
}

export interface MockService {
  namespace: string
  name: string
  type: string
  clusterIps: readonly string[]
  externalIps: readonly string[]
  ports: readonly MockPort[]
  endpoints: MockEndpoint[]
  internalLocal: boolean
  externalLocal: boolean
  /** 0: no session affinity. */
  affinitySeconds: number
  hasHints: boolean
  sourceRanges: readonly string[]
  /** The data plane lacks an endpoint. */
  differs: boolean
  changedBy: number
  changedAt: string | undefined
  problems: readonly string[]
}

export const keyOf = ({ namespace, name }: Pick<MockService, 'namespace' | 'name'>): string => `${namespace}/${name}`

/** Numbers from 0 to 1 that look random and are the same each time. */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const zones = ['eu-1a', 'eu-1b', 'eu-1c']
const nodes = Array.from({ length: 120 }, (_, index) => ({
  name: `worker-${index + 1}`,
  zone: zones[(index + 2) % 3] as string,
}))
const namespaces =
  `accounts analytics auth billing cart catalog checkout ci comms content crm data default delivery docs edge events experiments feeds fraud gateway
  identity images ingest inventory kube-system ledger loyalty mail maps media metrics monitoring orders partners payments pricing profiles recommend
  reports returns reviews search sessions shipping storage stores support tax tracking uploads wallet web`.split(/\s+/)
const firstNames =
  'api worker cache db queue index proxy sync batch stream web admin internal public rpc grpc edge hooks jobs store view feed score rank geo rate token audit export import'.split(
    ' ',
  )
const secondNames = ' - - -v2 -blue -green -canary -eu -us -read -write -primary -replica -a -b'
  .split(' ')
  .map((name) => name.replace(/^-$/, ''))

/** What is wrong with the Services that are served in part. */
const takenAddress = '203.0.113.9:80/tcp belongs to Service default/web'

export class MockCluster {
  readonly services = new Map<string, MockService>()
  readonly random = randomNumbers(7)
  #pods = 0

  /** @param count of Services, with ten endpoints on average */
  constructor(count: number) {
    const weights = namespaces.map((_, index) => 0.25 + ((index * 7919) % 97) / 60)
    const sum = weights.reduce((total, weight) => total + weight, 0)
    let made = 0
    namespaces.forEach((namespace, index) => {
      const share = Math.round((count * (weights[index] as number)) / sum)
      const isLast = index === namespaces.length - 1
      const some = isLast ? count - made : Math.min(count - made, share)
      for (let each = 0; each < some; each++) this.#addService(namespace, made++)
    })
    if (count > 0) this.#addExample()
  }

  pick<Item>(list: readonly Item[]): Item {
    return list[Math.floor(this.random() * list.length)] as Item
  }

  newEndpoint(service: MockService, on = this.random() < 0.04 ? here.node : this.pick(nodes).name): MockEndpoint {
    const zone = on === here.node ? here.zone : (nodes.find(({ name }) => name === on)?.zone ?? '')
    const pod = ++this.#pods
    const low = `${(pod >> 8) & 255}.${pod & 255}`
    const ips = [
      `10.${244 + (pod >> 16)}.${low}`,
      ...(service.clusterIps.length > 1 ? [`fd00:244::${pod.toString(16)}`] : []),
    ]
    const suffix = (pod * 7919).toString(36).padStart(5, 'x').slice(-5)
    return {
      ...{ ips, pod: `${service.name}-5d8f7c9b6-${suffix}`, node: on, zone },
      ...{ ready: true, serving: true, terminating: false, isDuplicate: false },
    }
  }

  #addService(namespace: string, index: number): void {
    const { random } = this
    const base = `${this.pick(firstNames)}${this.pick(secondNames)}`
    let name = base
    for (let next = 2; this.services.has(`${namespace}/${name}`); next++) name = `${base}-${next}`
    const kind = random()
    const type = kind < 0.86 ? 'ClusterIP' : kind < 0.93 ? 'NodePort' : 'LoadBalancer'
    const isUdp = random() < 0.03
    const nodePort = type === 'ClusterIP' ? 0 : 30_000 + (index % 2767)
    const ip = `10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
    const service: MockService = {
      ...{ namespace, name, type },
      clusterIps: random() < 0.2 ? [ip, `fd00:96::${index.toString(16)}`] : [ip],
      externalIps: type === 'LoadBalancer' ? [`203.0.113.${index % 250}`] : [],
      ports: [
        {
          name: 'http',
          protocol: isUdp ? 'udp' : 'tcp',
          port: isUdp ? 53 : this.pick([80, 80, 443, 8080, 9090, 5432, 6379]),
          targetPort: this.pick([8080, 8443, 3000, 9000]),
          nodePort,
        },
      ],
      endpoints: [],
      internalLocal: random() < 0.006,
      externalLocal: type === 'LoadBalancer' && random() < 0.45,
      affinitySeconds: random() < 0.03 ? 10_800 : 0,
      hasHints: random() < 0.18,
      sourceRanges: type === 'LoadBalancer' && random() < 0.15 ? ['198.51.100.0/24'] : [],
      ...{
        differs: false,
        changedBy: 0,
        changedAt: undefined,
        problems: this.services.size % 47 === 11 ? [takenAddress] : [],
      },
    }
    if (random() < 0.1) {
      service.ports = [
        ...service.ports,
        { name: 'metrics', protocol: 'tcp', port: 9102, targetPort: 9102, nodePort: 0 },
      ]
    }
    const size = random() < 0.02 ? 40 + Math.floor(random() * 30) : 1 + Math.floor(random() * 17)
    for (let each = 0; each < size; each++) service.endpoints.push(this.newEndpoint(service))
    this.#spoil(service)
    this.services.set(keyOf(service), service)
  }

  /** A few Services are not well. */
  #spoil(service: MockService): void {
    const fate = this.random()
    if (fate < 0.003) service.endpoints = []
    for (const endpoint of service.endpoints) {
      if (fate < 0.0045) Object.assign(endpoint, { ready: false, serving: false })
      else if (fate < 0.007) Object.assign(endpoint, { ready: false, terminating: true })
      else if (fate < 0.025 && this.random() < 0.35) Object.assign(endpoint, { ready: false, serving: false })
    }
  }

  /** One Service that has everything: `payments/api`. It is the first if there is no such namespace. */
  #addExample(): void {
    const all = [...this.services.values()]
    const inPayments = all.find(({ namespace }) => namespace === 'payments')
    const service = this.services.get('payments/api') ?? inPayments ?? (all[0] as MockService)
    this.services.delete(keyOf(service))
    Object.assign(service, { namespace: 'payments', name: 'api', type: 'LoadBalancer' })
    Object.assign(service, { clusterIps: ['10.96.13.17', 'fd00:96::d11'], externalIps: ['203.0.113.80'] })
    Object.assign(service, { internalLocal: false, externalLocal: true, affinitySeconds: 10_800, hasHints: true })
    service.sourceRanges = ['198.51.100.0/24']
    service.ports = [
      { name: 'https', protocol: 'tcp', port: 443, targetPort: 8443, nodePort: 31_443 },
      { name: 'metrics', protocol: 'tcp', port: 9102, targetPort: 9102, nodePort: 31_102 },
    ]
    const ons = [19, 17, 32, 46, 17, 59, 73, 63, 86, 90, 2].map((number) => `worker-${number}`)
    service.endpoints = ons.map((on) => this.newEndpoint(service, on))
    Object.assign(service.endpoints[7] as MockEndpoint, { ready: false, serving: false })
    Object.assign(service.endpoints[5] as MockEndpoint, { ready: false, terminating: true })
    service.endpoints.push({ ...(service.endpoints[1] as MockEndpoint), isDuplicate: true })
    this.services.set(keyOf(service), service)
  }
}

export interface Selected {
  readonly endpoint: MockEndpoint
  readonly scopes: readonly EndpointScope[]
  readonly reason: EndpointReason | undefined
}

/** What this node uses, and why not the others. */
export function select(service: MockService): Selected[] {
  const usable = service.endpoints.filter(({ isDuplicate }) => !isDuplicate)
  const standsIn = ({ serving, terminating }: MockEndpoint) => serving && terminating
  const ready = usable.filter((endpoint) => endpoint.ready)
  const inZone = ready.filter(({ zone }) => zone === here.zone)
  const chosen = service.hasHints && inZone.length > 0 ? inZone : ready
  const cluster = new Set(chosen.length > 0 ? chosen : usable.filter(standsIn))
  const localReady = ready.filter(({ node }) => node === here.node)
  const local = new Set(
    localReady.length > 0 ? localReady : usable.filter((each) => each.node === here.node && standsIn(each)),
  )
  const isOpen = service.type !== 'ClusterIP'
  return service.endpoints.map((endpoint) => {
    const all: readonly (EndpointScope | false)[] = [
      (service.internalLocal ? local : cluster).has(endpoint) && 'internal',
      isOpen && (service.externalLocal ? local : cluster).has(endpoint) && 'external',
      isOpen && cluster.has(endpoint) && 'cluster',
    ]
    const scopes = endpoint.isDuplicate ? [] : all.filter((scope) => scope !== false)
    return { endpoint, scopes, reason: scopes.length > 0 ? undefined : reasonOf(endpoint, cluster.has(endpoint)) }
  })
}

function reasonOf({ isDuplicate, ready, serving, terminating }: MockEndpoint, isInCluster: boolean): EndpointReason {
  if (isDuplicate) return 'duplicate'
  if (isInCluster) return 'not-local'
  if (ready) return 'hints-other-zone'
  return serving && terminating ? 'terminating' : 'not-ready'
}

/** The row of the stream. */
export function liveService(service: MockService): LiveService {
  const selected = select(service)
  const verdict = verdictOf(service, selected)
  const reason =
    (verdict === 'refused' && service.endpoints.length > 0 ? notReady : reasons[verdict]) ??
    service.problems[0] ??
    atRest(selected)
  const { namespace, name, type, clusterIps, externalIps, changedBy, changedAt } = service
  return {
    ...{ namespace, name, type, clusterIps, externalIps, changedBy },
    ports: service.ports.map(
      ({ port, nodePort, protocol }) => `${port}${nodePort > 0 ? `:${nodePort}` : ''}/${protocol}`,
    ),
    endpoints: selected.filter(({ reason }) => reason === undefined).length,
    internalTrafficPolicy: service.internalLocal ? 'Local' : 'Cluster',
    externalTrafficPolicy: service.externalLocal ? 'Local' : 'Cluster',
    sessionAffinity: service.affinitySeconds > 0,
    ...{ verdict, reason, findings: reason === '' ? [] : ['KPNG-S001'] },
    headline: `${namespace}/${name} is ${verdict}${reason === '' ? '' : `: ${reason}`}.`,
    total: service.endpoints.length,
    hints: service.hasHints,
    sourceRanges: service.sourceRanges.length > 0,
    ...(changedAt === undefined ? {} : { changedAt }),
  }
}

const notReady = 'none of its endpoints is ready'
const reasons: Readonly<Partial<Record<Verdict, string>>> = {
  refused: 'no EndpointSlice of it lists an endpoint',
  dropped: 'externalTrafficPolicy is Local, and no endpoint on this node serves it',
  draining: 'only terminating endpoints are left',
  differs: 'the data plane does not hold what it should',
}

function verdictOf(service: MockService, selected: readonly Selected[]): Verdict {
  const used = selected.filter(({ scopes }) => scopes.length > 0)
  const has = (scope: EndpointScope) => used.some(({ scopes }) => scopes.includes(scope))
  if (service.differs) return 'differs'
  if (!service.endpoints.some(({ serving }) => serving)) return 'refused'
  if (!has('internal') || (service.type !== 'ClusterIP' && !has('external'))) return 'dropped'
  if (used.every(({ endpoint }) => endpoint.terminating)) return 'draining'
  return service.problems.length > 0 ? 'partly' : 'serving'
}

/** Endpoints that get no connections while others do. */
function atRest(selected: readonly Selected[]): string {
  const count = selected.filter(({ reason }) => reason === 'not-ready' || reason === 'terminating').length
  return count === 0 ? '' : `${count} not ready of ${selected.length} endpoints`
}
