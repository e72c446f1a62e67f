import { cpus } from 'node:os'
import type { Log } from '@kpng/api'
import { applySetting, type KernelSetting, type SettingOutcome, sysctlPath } from '@kpng/linux'
import type { Settings } from '../config/settings.js'

type ConntrackSettings = Pick<Settings, Extract<keyof Settings, `conntrack${string}`>>

const hashSize = 'sys/module/nf_conntrack/parameters/hashsize'
const ifMissing = 'Load the module nf_conntrack on the node.'

/** The kernel's settings for tracked connections. A 0 leaves the kernel's own. */
export function conntrackValues(settings: ConntrackSettings, cores: number): KernelSetting[] {
  const values: KernelSetting[] = []
  const add = (name: string, value: number) => {
    if (value > 0) values.push({ path: sysctlPath(`net.netfilter.${name}`), value, ifMissing })
  }
  const seconds = (ms: number) => Math.floor(ms / 1000)
  const perCore = settings.conntrackMaxPerCore
  const max = perCore > 0 ? Math.max(settings.conntrackMin, perCore * cores) : 0
  add('nf_conntrack_max', max)
  // Entries hang in a table of lists; kube-proxy keeps these at four entries or shorter.
  if (max > 0) values.push({ path: hashSize, value: Math.floor(max / 4), atLeast: true, ifMissing })
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
  /** Of the machine, not of the container: the limit is the machine's. Default: asks the system. */
  readonly cores?: number
  /** Where /proc and /sys are. Default `/`. */
  readonly root?: string
}

interface AppliedValue extends KernelSetting {
  readonly outcome: SettingOutcome
}

/** Sets what is not yet as it should be. What cannot be set is warned about, and everything else goes on. */
export async function applyConntrack(options: ApplyConntrackOptions): Promise<AppliedValue[]> {
  const { settings, log, cores = cpus().length, root = '/' } = options
  const applied: AppliedValue[] = []
  for (const wanted of conntrackValues(settings, cores)) {
    applied.push({ ...wanted, outcome: await applySetting(wanted, { log, root }) })
  }
  return applied
}
