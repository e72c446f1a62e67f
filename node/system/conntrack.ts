import { cpus } from 'node:os'
import type { Log } from '@kpng/api'
import { applySetting, type KernelSetting, type SettingOutcome, sysctlPath } from '@kpng/linux'
import type { Settings } from '../config/settings.js'
import { rememberChanges } from './sysctl-record.js'

type ConntrackSettings = Pick<Settings, Extract<keyof Settings, `conntrack${string}`>>

const hashSize = 'sys/module/nf_conntrack/parameters/hashsize'
const ifMissing = 'Load the module nf_conntrack on the node.'
const ifReadOnly =
  'The component deploy/components/conntrack sets it in a privileged init container; or set it on the node.'

/** kube-proxy's limit for machines with many cores, since a larger table takes much kernel memory. */
const highestMax = 1_048_576

/** The kernel's settings for tracked connections. A 0 means: do not change it. */
export function conntrackValues(settings: ConntrackSettings, cores: number): KernelSetting[] {
  const values: KernelSetting[] = []
  const add = (name: string, value: number, atLeast = false) => {
    if (value > 0) values.push({ path: sysctlPath(`net.netfilter.${name}`), value, atLeast, ifMissing, ifReadOnly })
  }
  const seconds = (ms: number) => Math.floor(ms / 1000)
  const perCore = settings.conntrackMaxPerCore
  const scaled = perCore * cores
  const max = perCore > 0 ? (scaled > highestMax ? highestMax : Math.max(settings.conntrackMin, scaled)) : 0
  // Never lowered, unlike in kube-proxy: an administrator raised it for a reason, and a full table drops new connections.
  add('nf_conntrack_max', max, true)
  // The kernel has a hash table of lists. As in kube-proxy, a list has four entries on average if the table is full.
  if (max > 0) values.push({ path: hashSize, value: Math.floor(max / 4), atLeast: true, ifMissing, ifReadOnly })
  add('nf_conntrack_tcp_timeout_established', seconds(settings.conntrackTcpEstablishedTimeoutMs))
  add('nf_conntrack_tcp_timeout_close_wait', seconds(settings.conntrackTcpCloseWaitTimeoutMs))
  add('nf_conntrack_tcp_be_liberal', settings.conntrackTcpBeLiberal ? 1 : 0)
  add('nf_conntrack_udp_timeout', seconds(settings.conntrackUdpTimeoutMs))
  add('nf_conntrack_udp_timeout_stream', seconds(settings.conntrackUdpStreamTimeoutMs))
  return values
}

interface ApplyConntrackOptions {
  readonly settings: ConntrackSettings
  readonly log: Log
  /** Cores of the machine, not of the container: the limit is for the whole machine. Default: asks the system. */
  readonly cores?: number
  /** Where /proc, /sys and /run are. Default `/`. */
  readonly root?: string
}

interface AppliedValue extends KernelSetting {
  readonly outcome: SettingOutcome
}

/** Sets what differs, and remembers what was there before. A value that cannot be set gets a warning, and the rest continues. */
export async function applyConntrack(options: ApplyConntrackOptions): Promise<AppliedValue[]> {
  const { settings, log, cores = cpus().length, root = '/' } = options
  const applied: AppliedValue[] = []
  const changes: Record<string, { before: number; value: number }> = {}
  for (const wanted of conntrackValues(settings, cores)) {
    const { path, value } = wanted
    const onChanged = (before: number) => {
      changes[path] = { before, value }
    }
    applied.push({ ...wanted, outcome: await applySetting(wanted, { log, root, onChanged }) })
  }
  await rememberChanges(changes, { log, root })
  return applied
}
