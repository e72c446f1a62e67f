import { type Family, families, familyOf, hostPort, KpngError, messageOf } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type FrontendAddress,
  type HeldFrontend,
  type NodeView,
  type Observations,
  type SyncStep,
} from '@kpng/client'
import {
  backendOf,
  type DataPlane,
  FrontendTable,
  type SteppedBackend,
  type Wanted,
  type Written,
} from '@kpng/dataplane'
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
export function winkernelBackend(options: WinkernelOptions = {}): SteppedBackend {
  const settings = settingsOf(options)
  const { log, checkIntervalMs, ownAddresses } = settings
  const frontends = new FrontendTable(settings.dataplane, log)
  const host = { check: () => {}, lock: async () => ({ release: async () => {} }), addresses: ownAddresses }
  return backendOf(new Winkernel(settings, frontends), { frontends, host, log, checkIntervalMs })
}

/** HNS, once it has told its version. */
interface Connected {
  readonly hcn: Hcn
  readonly features: HnsFeatures
  readonly reconciler: Reconciler
}

interface Plan {
  readonly network: HcnNetwork
  readonly desired: ReturnType<typeof desiredState>
  readonly isCheck: boolean
}

/**
 * Load balancers of HNS. HNS does not say what others change: everything is compared at each sync and each check, sooner while HNS has refused
 * something or pods have no endpoint yet. It may start after kpng, or be restarted.
 */
class Winkernel implements DataPlane<void, Plan> {
  readonly name = 'winkernel'
  readonly needs = { rights: [], programs: [] }
  readonly observations: Observations
  families: readonly Family[] = ['IPv4']
  readonly #settings: Settings
  readonly #frontends: FrontendTable
  #hcn: Hcn | undefined
  #connected: Connected | undefined
  #network: HcnNetwork | undefined
  #failures: ReadonlyMap<string, string> = new Map()
  #isComplete = true
  #problems = new Set<string>()
  #isOpen = false

  constructor(settings: Settings, frontends: FrontendTable) {
    this.#settings = settings
    this.#frontends = frontends
    this.observations = { failures: () => this.#failures, listener: {} }
  }

  async open(): Promise<void> {
    const { networkName, log } = this.#settings
    this.#isOpen = true
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

  /** The network may have been made again, with another ID. */
  async prepare(view: NodeView): Promise<void> {
    const { hcn, features } = await this.#connect()
    const { networkName } = this.#settings
    this.#network = await hcn.networkNamed(networkName)
    if (!this.#network) {
      throw new KpngError(
        'unavailable',
        `There is no HNS network ${networkName}. The network plug-in makes it; \`hnsdiag list networks\` shows those that exist.`,
      )
    }
    this.families = familiesOf(this.#network, view, features)
  }

  /** What was read is forgotten; the comparison reads it again. */
  async read(): Promise<void> {
    this.#connected?.reconciler.forget()
  }

  async plan({ view, isCheck }: Wanted<void>): Promise<Plan> {
    const { hcn, features } = await this.#connect()
    const { forwardHealthCheckVip, rootEndpointName } = this.#settings
    const root = forwardHealthCheckVip ? await hcn.endpointNamed(rootEndpointName) : undefined
    const network = this.#network as HcnNetwork
    const surroundings = { settings: this.#settings, network, features, rootEndpoint: root?.ID }
    return { network, isCheck, desired: desiredState(this.#frontends, view, surroundings) }
  }

  async write({ network, desired, isCheck }: Plan, steps: SyncStep[] | undefined): Promise<Written> {
    this.#reportProblems(desired.problems)
    const { reconciler } = await this.#connect()
    const wasComplete = this.#isComplete
    const outcome = await asStep(steps, 'hcn', {}, () => reconciler.reconcile(network, desired))
    this.#report(outcome)
    this.#isComplete = outcome.failures.size === 0 && outcome.missingPods.size === 0
    const repaired = isCheck && wasComplete ? [...outcome.written] : []
    if (repaired.length > 0) {
      this.#settings.log.warn('Load balancers were missing or different in HNS; they were repaired', {
        services: repaired.join(', '),
      })
    }
    return { repaired, isComplete: this.#isComplete }
  }

  /** The load balancers stay and go on serving. */
  close(): void {
    this.#isOpen = false
  }

  /** HNS does not know whose load balancers are whose: all are removed, as kube-proxy does. Pods' endpoints stay. */
  async remove(): Promise<void> {
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
      families: this.families,
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
    if (this.#isOpen)
      log.info('Serving with HNS load balancers; this backend is experimental', { version: text, network: networkName })
    this.#connected = { hcn, features, reconciler: new Reconciler(hcn, { canModify: features.modifyLoadBalancer }) }
    return this.#connected
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
}

/** As in kube-proxy, overlay networks have one family: that of the node. */
function familiesOf(network: HcnNetwork, view: NodeView, { dualStack }: HnsFeatures): readonly Family[] {
  if (dualStack && !isOverlay(network)) return families
  const [address] = view.node?.addresses ?? []
  return [address === undefined ? 'IPv4' : familyOf(address)]
}
