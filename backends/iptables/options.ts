import { KpngError, type Log, silentLog } from '@kpng/api'
import {
  checkedMasqueradeBit,
  type DataplaneOptions,
  type DataplaneSettings,
  dataplaneSettings,
  type Leftovers,
} from '@kpng/dataplane'
import type { Flavour } from './flavour.js'
import { type ChainNames, chainNames, mainName } from './names.js'

export interface IptablesOptions extends DataplaneOptions {
  /**
   * Whose chains these are. `kpng` has the names of kube-proxy's chains; a specialised proxier has chains of its own, so that it
   * can run beside the main one. `cleanup` removes the chains of this name; without a name, those of every kpng. Default `kpng`.
   */
  readonly name?: string
  /** Which iptables: `auto` is the one that the rest of the node uses. Default `auto`. */
  readonly flavour?: Flavour | 'auto'
  /** Which bit of the packet mark means "to be masqueraded", 0 to 31. Default 14. */
  readonly masqueradeBit?: number
  /** Whether forwarded packets that conntrack takes for invalid are dropped. Default true. */
  readonly dropInvalid?: boolean
  /**
   * Whether node ports answer on 127.0.0.0/8 if nodePortAddresses contains it. It sets the sysctl route_localnet. IPv6 cannot.
   * Default false.
   */
  readonly localhostNodePorts?: boolean
  /**
   * With more endpoints than this, as in kube-proxy's large-cluster mode, most endpoints have no chain of their own and only the
   * rules in shared chains have comments. Default 1000.
   */
  readonly largeClusterEndpoints?: number
  /** Whether IPv6 is served. `auto`: if ip6tables works. Default `auto`. */
  readonly ipv6?: boolean | 'auto'
  /**
   * How often changes to our chains by others are looked for, in milliseconds; less often where reading the rules takes long.
   * 0: never. Default 5000.
   */
  readonly driftCheckIntervalMs?: number
  /** Whether UDP flows to endpoints that no longer serve are deleted. Default true. */
  readonly deleteStaleFlows?: boolean
  /** How long to wait for the lock of legacy iptables, in seconds. Default 10. */
  readonly lockWaitSeconds?: number
  /** Called after a sysctl was changed, with its file below `/`, the value before and the value now. Default: nobody is told. */
  readonly onSysctlChanged?: (path: string, before: number, value: number) => void
  /** Of other backends: removed after the first sync that succeeds. Default: nothing is looked for. */
  readonly leftovers?: readonly Leftovers[]
  /** Default: logs nothing. */
  readonly log?: Log
}

/** The options as the backend uses them: checked, and with their defaults. */
export interface Settings extends Required<Omit<IptablesOptions, keyof DataplaneOptions>> {
  readonly names: ChainNames
  readonly dataplane: DataplaneSettings
}

export function settingsOf(options: IptablesOptions = {}): Settings {
  const {
    name = mainName,
    flavour = 'auto',
    masqueradeBit = 14,
    dropInvalid = true,
    localhostNodePorts = false,
    largeClusterEndpoints = 1000,
    ipv6 = 'auto',
    driftCheckIntervalMs = 5000,
    deleteStaleFlows = true,
    lockWaitSeconds = 10,
    onSysctlChanged = () => {},
    leftovers = [],
    log = silentLog,
  } = options
  checkedMasqueradeBit(masqueradeBit)
  if (name === '') throw new KpngError('usage', 'The name of the iptables chains is empty. Leave it out, or give one.')
  return {
    ...{ name, names: chainNames(name), dataplane: dataplaneSettings(options), flavour, masqueradeBit, dropInvalid },
    ...{
      localhostNodePorts,
      largeClusterEndpoints,
      ipv6,
      driftCheckIntervalMs,
      deleteStaleFlows,
      lockWaitSeconds,
      onSysctlChanged,
      leftovers,
      log,
    },
  }
}
