import { type Family, families, familyOf, hostPort, KpngError, messageOf } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type Changes,
  type FrontendAddress,
  type HeldFrontend,
  type NodeView,
  type Observations,
  type SyncStep,
} from '@kpng/client'
import { type FrontendBackend, FrontendTable } from '@kpng/dataplane'
import { keyOf } from './balancers.js'
import { desiredState } from './desired.js'
import {
  balancerFlags,
  featuresOf,
  type Hcn,
  HcnError,
  type HcnNetwork,
  type HnsFeatures,
  isOverlay,
  isRemote,
  protocolNumbers,
} from './hcn.js'
import { type Settings, settingsOf, type WinkernelOptions } from './options.js'
import { type Outcome, Reconciler } from './reconcile.js'
import { sameMac, sourceVipName } from './remote-endpoints.js'

/** Serves one node's view with load balancers of the Host Compute Network of Windows. */
export function winkernelBackend(options: WinkernelOptions = {}): FrontendBackend {
  return new WinkernelBackend(settingsOf(options))
}

/** HNS, once it has told its version. */
interface Connected {
  readonly hcn: Hcn
  readonly features: HnsFeatures
  readonly reconciler: Reconciler
}

/** While something is missing, the first check comes this soon; each later one takes twice as long, up to the interval. */
const firstCheckMs = 1000

/**
 * States: *not connected*, until HNS has told its version; *complete*, when HNS is compared every `checkIntervalMs`; *incomplete*, while
 * HNS has refused something or pods have no endpoint yet, when it is compared sooner.
 */
class WinkernelBackend implements FrontendBackend {
  readonly frontends: FrontendTable
  readonly observations: Observations
  readonly #settings: Settings
  #hcn: Hcn | undefined
  #connected: Connected | undefined
  #families: readonly Family[] = ['IPv4']
  #view: NodeView | undefined
  #failures: ReadonlyMap<string, string> = new Map()
  #isComplete = true
  #problems = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #checkDelayMs: number
  #closed = false
  /** Syncs and checks happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(settings: Settings) {
    this.#settings = settings
    this.#checkDelayMs = settings.checkIntervalMs
    this.frontends = new FrontendTable(settings.dataplane, settings.log)
    this.observations = { failures: () => this.#failures, listener: {} }
  }

  async setup(): Promise<void> {
    const { networkName, log } = this.#settings
    this.#hcn = await this.#settings.openHcn()
    if (networkName === '') {
      throw new KpngError(
        'usage',
        'The HNS network of the pods is not known. Give --network-name (winkernel.networkName), or set KUBE_NETWORK.',
      )
    }
    await this.#connect().catch((error) => {
      // HNS may start later, or again.
      if (!HcnError.is(error, 'notRunning')) throw error
      log.warn('The Host Network Service is not running; waiting for it', { error: messageOf(error) })
    })
  }

  sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    return this.#inTurn(async () => {
      const connected = await this.#connect()
      const network = await this.#network(connected)
      this.#families = this.#familiesOf(network, view, connected.features)
      this.frontends.apply(view, changes, { families: this.#families, addresses: this.#settings.ownAddresses() })
      this.#view = view
      if (changes.full) connected.reconciler.forget()
      this.#checkDelayMs = firstCheckMs
      await asStep(steps, 'hcn', {}, () => this.#reconcile(connected, network))
    }).finally(() => this.#scheduleCheck())
  }

  /** The load balancers stay and go on serving. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#inTurn(async () => {})
  }

  /** HNS does not know whose load balancers are whose: all are removed, as kube-proxy does. Pods' endpoints stay. */
  async cleanup(): Promise<void> {
    await this.close()
    this.#hcn ??= await this.#settings.openHcn()
    const { hcn, reconciler } = await this.#connect()
    const { networkName } = this.#settings
    const network = networkName === '' ? undefined : await hcn.networkNamed(networkName)
    if (!network) {
      for (const id of await hcn.loadBalancerIds()) await hcn.deleteLoadBalancer(id)
      return
    }
    const nodeMacs = this.#settings.ownAddresses().map((ip) => this.#settings.hostMacOf(ip))
    const { failures } = await reconciler.removeAll(
      network,
      (endpoint) =>
        endpoint.Name === sourceVipName ||
        (isRemote(endpoint) && nodeMacs.some((mac) => mac !== undefined && sameMac(mac, endpoint.MacAddress))),
    )
    if (failures.size === 0) return
    const sentences = [...failures].map(([name, why]) => `${name}: ${why}.`)
    throw new KpngError('unavailable', `HNS could not remove everything. ${sentences.join(' ')}`)
  }

  async hasRules(): Promise<boolean> {
    const { hcn } = await this.#connect()
    return (await hcn.loadBalancerIds()).length > 0
  }

  features(): BackendFeatures {
    const has = this.#connected?.features
    return {
      name: 'winkernel',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp', 'sctp'],
      families: this.#families,
      sessionAffinity: has?.sessionAffinity ?? true,
      sourceRanges: false,
      wholeAddresses: false,
      keepsSourceAddress: has?.directServerReturn ?? true,
      localhostNodePorts: false,
      guardsClusterIps: false,
      counters: false,
      directServerReturn: this.#settings.enableDsr,
    }
  }

  async held({ family, address, protocol, port }: FrontendAddress): Promise<HeldFrontend | undefined> {
    if (protocol === 'any') return undefined
    const { reconciler } = await this.#connect()
    const key = keyOf({
      Flags: family === 'IPv6' ? balancerFlags.ipv6 : 0,
      FrontendVIPs: address === '' ? [] : [address],
      PortMappings: [{ Protocol: protocolNumbers[protocol], InternalPort: 0, ExternalPort: port }],
    })
    const held = await reconciler.held(key as string)
    if (!held) return undefined
    const endpoints = held.ips.map((ip) => hostPort(ip, held.balancer.PortMappings?.[0]?.InternalPort ?? 0))
    return { inside: endpoints, outside: endpoints, otherwise: 'drop' }
  }

  async #connect(): Promise<Connected> {
    if (this.#connected) return this.#connected
    const hcn = this.#hcn
    if (!hcn) throw new KpngError('usage', 'The winkernel backend was not set up. Call setup() first.')
    const { enableDsr, networkName, log } = this.#settings
    const version = await hcn.version()
    const features = featuresOf(version)
    const text = `${version.Major}.${version.Minor}`
    if (!features.schema2) {
      throw new KpngError(
        'unsupported',
        `HNS ${text} is too old; 9.2 is needed. Update Windows, or use to-winuserspace.`,
      )
    }
    if (enableDsr && !features.directServerReturn) {
      throw new KpngError('unsupported', `HNS ${text} has no direct server return. Leave out --enable-dsr (enableDSR).`)
    }
    if (!this.#closed)
      log.info('Serving with HNS load balancers; this backend is experimental', { version: text, network: networkName })
    this.#connected = { hcn, features, reconciler: new Reconciler(hcn, { canModify: features.modifyLoadBalancer }) }
    return this.#connected
  }

  async #network({ hcn }: Connected): Promise<HcnNetwork> {
    const { networkName } = this.#settings
    const network = await hcn.networkNamed(networkName)
    if (network) return network
    throw new KpngError(
      'unavailable',
      `There is no HNS network ${networkName}. The network plug-in makes it; \`hnsdiag list networks\` shows those that exist.`,
    )
  }

  /** As in kube-proxy, overlay networks have one family: that of the node. */
  #familiesOf(network: HcnNetwork, view: NodeView, { dualStack }: HnsFeatures): readonly Family[] {
    if (dualStack && !isOverlay(network)) return families
    const [address] = view.node?.addresses ?? []
    return [address === undefined ? 'IPv4' : familyOf(address)]
  }

  async #reconcile({ hcn, features, reconciler }: Connected, network: HcnNetwork): Promise<Outcome> {
    const { forwardHealthCheckVip, rootEndpointName } = this.#settings
    const root = forwardHealthCheckVip ? await hcn.endpointNamed(rootEndpointName) : undefined
    const surroundings = { settings: this.#settings, network, features, rootEndpoint: root?.ID }
    const desired = desiredState(this.frontends, this.#view as NodeView, surroundings)
    this.#reportProblems(desired.problems)
    const outcome = await reconciler.reconcile(network, desired)
    this.#report(outcome)
    this.#isComplete = outcome.failures.size === 0 && outcome.missingPods.size === 0
    if (this.#isComplete) this.#checkDelayMs = this.#settings.checkIntervalMs
    return outcome
  }

  #scheduleCheck(): void {
    clearTimeout(this.#timer)
    const { checkIntervalMs } = this.#settings
    if (checkIntervalMs === 0 || this.#closed) return
    this.#timer = setTimeout(() => void this.#check(), Math.min(this.#checkDelayMs, checkIntervalMs))
    this.#timer.unref()
    this.#checkDelayMs *= 2
  }

  /** Finds what others changed, what HNS lost when it was restarted, and pods whose endpoints came late. */
  async #check(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        if (this.#closed || !this.#view) return
        const wasComplete = this.#isComplete
        const connected = await this.#connect()
        const { written } = await this.#reconcile(connected, await this.#network(connected))
        if (written.size === 0 || !wasComplete) return
        this.#settings.log.warn('Load balancers were missing or different in HNS; they were repaired', {
          services: [...written].join(', '),
        })
        this.observations.listener.repaired?.([...written])
      })
    } catch (error) {
      this.#settings.log.error('HNS could not be checked; it is tried again', { error: messageOf(error) })
    }
    this.#scheduleCheck()
  }

  /** Each failure once, and again if its reason changes. */
  #report({ failures, missingPods }: Outcome): void {
    const { log } = this.#settings
    for (const [name, error] of failures) {
      if (this.#failures.get(name) !== error) log.warn('HNS refused a change; it is tried again', { name, error })
    }
    this.#failures = failures
    if (missingPods.size > 0)
      log.detail(2, 'Pods on this node have no HNS endpoint yet', { pods: [...missingPods].join(', ') })
  }

  /** Each problem once, and again if it comes back. */
  #reportProblems(problems: ReadonlyMap<string, readonly string[]>): void {
    const before = this.#problems
    this.#problems = new Set()
    for (const [service, reasons] of problems) {
      for (const reason of reasons) {
        const text = `${service} ${reason}`
        if (!before.has(text)) this.#settings.log.warn('A part of a Service is not served', { service, reason })
        this.#problems.add(text)
      }
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }
}
