import { networkInterfaces } from 'node:os'
import { KpngError, type Log, parseIp, silentLog } from '@kpng/api'
import { type DataplaneOptions, type DataplaneSettings, dataplaneSettings } from '@kpng/dataplane'
import { reachableAddresses } from '@kpng/linux'
import { openComputeNetwork } from './computenetwork.js'
import type { Hcn } from './hcn.js'

/** The names in brackets are those of `winkernel` in a KubeProxyConfiguration. */
export interface WinkernelOptions extends DataplaneOptions {
  /** The HNS network of the pods (`networkName`). Default: the environment variable KUBE_NETWORK. */
  readonly networkName?: string
  /** Overlay networks need it: the source address that pods see (`sourceVip`). Default: none. */
  readonly sourceVip?: string
  /** Whether answers of cluster IPs go to the client directly (`enableDSR`). Default false. */
  readonly enableDsr?: boolean
  /**
   * Whether health checks of load balancers that come to the load-balancer IP are passed to the node's root endpoint
   * (`forwardHealthCheckVip`). Default false.
   */
  readonly forwardHealthCheckVip?: boolean
  /** The name of the node's root endpoint (`rootHnsEndpointName`). Default `cbr0`. */
  readonly rootEndpointName?: string
  /** The port of /healthz, for the health checks of Services without a port of their own. Default 10256. */
  readonly healthzPort?: number
  /** How often HNS is compared with what it should hold, in milliseconds; sooner while something is missing. Default 30,000. 0: never. */
  readonly checkIntervalMs?: number
  /** Default: logs nothing. */
  readonly log?: Log
  /** For tests. Default: computenetwork.dll of this machine. */
  readonly openHcn?: () => Promise<Hcn>
  /** For tests: the MAC address of the interface with an address. Default: that of this machine. */
  readonly hostMacOf?: (ip: string) => string | undefined
  /** For tests: the addresses of this machine. */
  readonly ownAddresses?: () => readonly string[]
}

/** The options as the backend uses them: checked, and with their defaults. */
export interface Settings extends Required<Omit<WinkernelOptions, keyof DataplaneOptions>> {
  readonly dataplane: DataplaneSettings
}

export function settingsOf(options: WinkernelOptions = {}): Settings {
  const {
    networkName = process.env.KUBE_NETWORK ?? '',
    sourceVip = '',
    enableDsr = false,
    forwardHealthCheckVip = false,
    rootEndpointName = 'cbr0',
    healthzPort = 10256,
    checkIntervalMs = 30_000,
    log = silentLog,
    openHcn = () => openComputeNetwork(),
    hostMacOf = hostMac,
    ownAddresses = reachableAddresses,
  } = options
  if (sourceVip !== '' && !parseIp(sourceVip)) {
    throw new KpngError('usage', `The source VIP "${sourceVip}" is not an IP address. Give one of the pod network.`)
  }
  if (!(checkIntervalMs >= 0)) {
    throw new KpngError('usage', `checkIntervalMs of the winkernel backend is ${checkIntervalMs}; give 0 or more.`)
  }
  return {
    ...{ networkName, sourceVip, enableDsr, forwardHealthCheckVip, rootEndpointName, healthzPort, checkIntervalMs },
    ...{ log, openHcn, hostMacOf, ownAddresses, dataplane: dataplaneSettings({ ...options, sourceRanges: false }) },
  }
}

/** As HNS writes it: `00-15-5D-01-02-03`. */
function hostMac(ip: string): string | undefined {
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ address }) => parseIp(address)?.text === ip)
  return found?.mac.replaceAll(':', '-').toUpperCase()
}
