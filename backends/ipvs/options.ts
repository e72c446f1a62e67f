import { type Cidr, KpngError, type Log, parseCidr, silentLog } from '@kpng/api'
import { type DataplaneOptions, type DataplaneSettings, dataplaneSettings } from '@kpng/dataplane'
import type { Timeouts } from './ipvs-netlink.js'
import { mainName, type Names, namesOf } from './names.js'

/** The schedulers of the kernel. Each is a module: `ip_vs_rr`, `ip_vs_wrr` … */
export const schedulers = [
  ...['rr', 'wrr', 'lc', 'wlc', 'lblc', 'lblcr', 'dh', 'sh', 'mh', 'sed', 'nq', 'fo', 'ovf', 'twos'],
] as const

/** Chooses the scheduler of one Service. Pass it on with `--with-service-annotations`. */
export const schedulerAnnotation = 'kpng.sigs.k8s.io/ipvs-scheduler'

/** By file below `/`: the value before and the value now. */
export type SysctlChanges = Record<string, { readonly before: number; readonly value: number }>

export interface IpvsOptions extends DataplaneOptions {
  /**
   * Whose things these are. `kpng` has the interface kube-ipvs0, as kube-proxy; a specialised proxier has an interface and tables of
   * its own. `cleanup` removes what belongs to this name; without a name, what belongs to every kpng. Default `kpng`.
   */
  readonly name?: string
  /** How IPVS chooses an endpoint for a connection. Default `rr`: in turns. */
  readonly scheduler?: string
  /** Virtual servers with addresses in these ranges belong to others and are never removed. Default: none. */
  readonly excludeCidrs?: readonly string[]
  /** Whether the node answers ARP requests only for addresses of the interface that they came in at. Default false. */
  readonly strictArp?: boolean
  /** After how many seconds IPVS forgets an idle connection. 0: the kernel's values stay. Default: all 0. */
  readonly timeouts?: Partial<Timeouts>
  /** How long an endpoint that is gone keeps its connections, in milliseconds. Default 900000: 15 minutes, as in kube-proxy. */
  readonly drainLimitMs?: number
  /** How often kpng looks whether such an endpoint still has connections, in milliseconds. Default 10000. */
  readonly drainCheckIntervalMs?: number
  /** Which bit of the packet mark means "to be masqueraded", 0 to 31. Default 14. */
  readonly masqueradeBit?: number
  /** Whether IPv6 is served. `auto`: if the host has it. Default `auto`. */
  readonly ipv6?: boolean | 'auto'
  /** How often changes by others are looked for, in milliseconds; less often where looking takes long. 0: never. Default 5000. */
  readonly driftCheckIntervalMs?: number
  /** Whether UDP flows to endpoints that no longer serve are deleted. Default true. */
  readonly deleteStaleFlows?: boolean
  /** Called once after sysctls were changed, with the values by file below `/`. Default: nobody is told. */
  readonly onSysctlsChanged?: (changes: SysctlChanges) => Promise<void>
  /** Default: logs nothing. */
  readonly log?: Log
}

/** The options as the backend uses them: checked, and with their defaults. */
export interface Settings extends Required<Omit<IpvsOptions, keyof DataplaneOptions | 'excludeCidrs' | 'timeouts'>> {
  readonly names: Names
  readonly dataplane: DataplaneSettings
  readonly excludeCidrs: readonly Cidr[]
  readonly timeouts: Timeouts
}

export function settingsOf(options: IpvsOptions = {}): Settings {
  const {
    name = mainName,
    scheduler = 'rr',
    excludeCidrs = [],
    strictArp = false,
    timeouts = {},
    drainLimitMs = 900_000,
    drainCheckIntervalMs = 10_000,
    masqueradeBit = 14,
    ipv6 = 'auto',
    driftCheckIntervalMs = 5000,
    deleteStaleFlows = true,
    onSysctlsChanged = async () => {},
    log = silentLog,
  } = options
  if (!Number.isInteger(masqueradeBit) || masqueradeBit < 0 || masqueradeBit > 31) {
    throw new KpngError(
      'usage',
      `masqueradeBit ${masqueradeBit} is not a bit of a packet mark. Give a number from 0 to 31.`,
    )
  }
  if (name === '') throw new KpngError('usage', 'The name of this kpng is empty. Leave it out, or give one.')
  if (!isScheduler(scheduler)) {
    throw new KpngError('usage', `IPVS has no scheduler "${scheduler}". Give one of ${schedulers.join(', ')}.`)
  }
  return {
    ...{ name, names: namesOf(name), dataplane: dataplaneSettings(options), scheduler, strictArp },
    excludeCidrs: excludeCidrs.map(checkedCidr),
    timeouts: { tcp: 0, tcpFin: 0, udp: 0, ...timeouts },
    ...{ drainLimitMs, drainCheckIntervalMs, masqueradeBit, ipv6, driftCheckIntervalMs, deleteStaleFlows },
    ...{ onSysctlsChanged, log },
  }
}

export const isScheduler = (name: string): boolean => (schedulers as readonly string[]).includes(name)

function checkedCidr(text: string): Cidr {
  const cidr = parseCidr(text)
  if (cidr) return cidr
  throw new KpngError('usage', `"${text}" in excludeCIDRs is not a CIDR. Write one like 10.0.0.0/8 or fd00::/64.`)
}
