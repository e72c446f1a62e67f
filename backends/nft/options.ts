import { KpngError, type Log, silentLog } from '@kpng/api'
import {
  checkedMasqueradeBit,
  type DataplaneOptions,
  type DataplaneSettings,
  dataplaneSettings,
  type Leftovers,
} from '@kpng/dataplane'
import { defaultTableName, isForeignTable } from './rules/names.js'
import type { RuleSettings } from './rules/skeleton.js'

/** Node ports are never served on loopback addresses. */
export interface NftOptions extends DataplaneOptions {
  /**
   * The name of the tables. Two proxies on one node, such as the main one and a specialised one, need two names. `cleanup`
   * removes the tables of this name; without a name, all tables of kpng. Default `kpng`.
   */
  readonly tableName?: string
  /** Which bit of the packet mark means "to be masqueraded", 0 to 31. Default 14. */
  readonly masqueradeBit?: number
  /** Whether forwarded TCP packets that conntrack considers invalid are dropped. Default true. */
  readonly dropInvalid?: boolean
  /** Whether IPv6 is served. `auto`: if the host has it. Default `auto`. */
  readonly ipv6?: boolean | 'auto'
  /** How often kpng checks whether others changed its tables, in milliseconds. 0: never. Default 1000. */
  readonly driftCheckIntervalMs?: number
  /** Whether UDP flows to endpoints that no longer serve are deleted. Default true. */
  readonly deleteStaleFlows?: boolean
  /**
   * Whether new connections are counted per Service port. It costs one lookup for the first packet of a connection, and one element
   * per address and port. Default false.
   */
  readonly counters?: boolean
  /** Of other backends: removed after the first sync that succeeds. Default: nothing is looked for. */
  readonly leftovers?: readonly Leftovers[]
  /** Default: logs nothing. */
  readonly log?: Log
}

/** The options as the backend uses them: checked, and with their defaults. */
export interface Settings extends RuleSettings, Required<Omit<NftOptions, keyof DataplaneOptions>> {
  readonly dataplane: DataplaneSettings
}

export function settingsOf(options: NftOptions = {}): Settings {
  const {
    tableName = defaultTableName,
    masqueradeBit = 14,
    dropInvalid = true,
    ipv6 = 'auto',
    driftCheckIntervalMs = 1000,
    deleteStaleFlows = true,
    counters = false,
    leftovers = [],
    log = silentLog,
  } = options
  checkedMasqueradeBit(masqueradeBit)
  // The name becomes part of rules.
  if (!/^kpng(-[a-zA-Z0-9._-]{1,50})?$/.test(tableName) || isForeignTable(tableName)) {
    throw new KpngError(
      'usage',
      `"${tableName}" is not a name for kpng's tables. Use kpng, or kpng- and letters, digits, ".", "_" or "-".`,
    )
  }
  const dataplane = dataplaneSettings(options)
  const { masqueradeAll, detectLocal } = dataplane
  return {
    ...{ dataplane, tableName, masqueradeAll, masqueradeBit, detectLocal, dropInvalid, ipv6 },
    ...{ driftCheckIntervalMs, deleteStaleFlows, counters, log },
    leftovers,
  }
}
