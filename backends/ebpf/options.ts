import { KpngError, type Log, silentLog } from '@kpng/api'
import type { NftOptions } from '@kpng/backend-nft'

/** The options of the nftables backend underneath, and those of the sockets. */
export interface EbpfOptions extends NftOptions {
  /** The cgroup (version 2) whose sockets are served, with all cgroups below it. Default: the root of the machine's cgroups. */
  readonly cgroup?: string
  /** Where the bpf file system is. If it is not mounted, kpng mounts it. Default `/sys/fs/bpf`. */
  readonly bpffs?: string
  /**
   * How many endpoints the maps can hold, counted once per address and port of a Service. The default takes 16 MiB of the kernel's memory, and
   * 76 MiB with Maglev. What does not fit is served by nftables. Default 131,072.
   */
  readonly maxEndpoints?: number
  /** How an endpoint is chosen. `maglev`: by the client's network namespace, without memory. Default `random`. */
  readonly balancing?: 'random' | 'maglev'
  /** Whether node ports are served on loopback addresses, where nodePortAddresses has them, for the node's own programs. Default true. */
  readonly localhostNodePorts?: boolean
}

/** The options of the sockets, checked and with their defaults. */
export interface EbpfSettings {
  readonly cgroup: string | undefined
  readonly bpffs: string
  /** The name of the folder in which maps and links are pinned. */
  readonly pinName: string
  readonly maxEndpoints: number
  readonly balancing: 'random' | 'maglev'
  readonly localhostNodePorts: boolean
  readonly counters: boolean
  readonly driftCheckIntervalMs: number
  readonly log: Log
}

const mostEndpoints = 2 ** 22

export function ebpfSettings(options: EbpfOptions): EbpfSettings {
  const { maxEndpoints = 131_072, balancing = 'random' } = options
  if (!Number.isInteger(maxEndpoints) || maxEndpoints < 1 || maxEndpoints > mostEndpoints) {
    throw new KpngError('usage', `maxEndpoints ${maxEndpoints} is not a number from 1 to ${mostEndpoints}.`)
  }
  if (balancing !== 'random' && balancing !== 'maglev') {
    throw new KpngError('usage', `balancing is "${balancing}". Give random or maglev.`)
  }
  return {
    cgroup: options.cgroup,
    bpffs: options.bpffs ?? '/sys/fs/bpf',
    pinName: pinNameOf(options.tableName ?? 'kpng'),
    maxEndpoints,
    balancing,
    localhostNodePorts: options.localhostNodePorts ?? true,
    counters: options.counters ?? false,
    driftCheckIntervalMs: options.driftCheckIntervalMs ?? 1000,
    log: options.log ?? silentLog,
  }
}

/** A bpf file system does not take names with dots. */
const pinNameOf = (tableName: string): string => tableName.replaceAll('.', '_')

/** Whether a folder of a bpf file system is kpng's. */
export const isPinName = (name: string): boolean => /^kpng(-[a-zA-Z0-9_-]{1,50})?$/.test(name)
