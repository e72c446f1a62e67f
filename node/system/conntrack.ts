import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { type Log, messageOf } from '@kpng/api'
import type { Settings } from '../config/settings.js'

export type ConntrackSettings = Pick<
  Settings,
  | 'conntrackMaxPerCore'
  | 'conntrackMin'
  | 'conntrackTcpEstablishedTimeoutMs'
  | 'conntrackTcpCloseWaitTimeoutMs'
  | 'conntrackTcpBeLiberal'
  | 'conntrackUdpTimeoutMs'
  | 'conntrackUdpStreamTimeoutMs'
>

/** A file of the kernel and the number that is to be in it. */
export interface KernelValue {
  /** Below the root folder. */
  readonly path: string
  readonly value: number
  /** What is there already is left when it is greater. */
  readonly atLeast?: boolean
}

const netfilter = 'proc/sys/net/netfilter'
const hashSize = 'sys/module/nf_conntrack/parameters/hashsize'

/** The kernel's settings for tracked connections. A 0 leaves the kernel's own. */
export function conntrackValues(settings: ConntrackSettings, cores: number): KernelValue[] {
  const values: KernelValue[] = []
  const add = (name: string, value: number) => {
    if (value > 0) values.push({ path: `${netfilter}/${name}`, value })
  }
  const seconds = (ms: number) => Math.floor(ms / 1000)
  const perCore = settings.conntrackMaxPerCore
  const max = perCore > 0 ? Math.max(settings.conntrackMin, perCore * cores) : 0
  add('nf_conntrack_max', max)
  // Entries hang in a table of lists; kube-proxy keeps these at four entries or shorter.
  if (max > 0) values.push({ path: hashSize, value: Math.floor(max / 4), atLeast: true })
  add('nf_conntrack_tcp_timeout_established', seconds(settings.conntrackTcpEstablishedTimeoutMs))
  add('nf_conntrack_tcp_timeout_close_wait', seconds(settings.conntrackTcpCloseWaitTimeoutMs))
  add('nf_conntrack_tcp_be_liberal', settings.conntrackTcpBeLiberal ? 1 : 0)
  add('nf_conntrack_udp_timeout', seconds(settings.conntrackUdpTimeoutMs))
  add('nf_conntrack_udp_timeout_stream', seconds(settings.conntrackUdpStreamTimeoutMs))
  return values
}

export interface ApplyConntrackOptions {
  readonly settings: ConntrackSettings
  readonly log: Log
  /** Of the machine, not of the container: the limit is the machine's. Default: asks the system. */
  readonly cores?: number
  /** Where /proc and /sys are. Default `/`. */
  readonly root?: string
}

export interface AppliedValue extends KernelValue {
  readonly outcome: 'set' | 'kept' | 'failed'
}

/** Sets what is not yet as it should be. What cannot be set is warned about, and everything else goes on. */
export async function applyConntrack(options: ApplyConntrackOptions): Promise<AppliedValue[]> {
  const { settings, log, cores = cpus().length, root = '/' } = options
  const applied: AppliedValue[] = []
  for (const wanted of conntrackValues(settings, cores)) {
    const outcome = await apply(join(root, wanted.path), wanted, log)
    applied.push({ ...wanted, outcome })
  }
  return applied
}

async function apply(
  path: string,
  { value, atLeast = false }: KernelValue,
  log: Log,
): Promise<AppliedValue['outcome']> {
  try {
    const before = await readValue(path, atLeast, log)
    if (before === undefined) return 'failed'
    if (atLeast ? before >= value : before === value) return 'kept'
    await writeFile(path, String(value), { flag: 'r+' })
    log.info('Set a value of the kernel', { path, before, value })
    return 'set'
  } catch (error) {
    log.warn('Cannot set a value of the kernel, and goes on without', { path, value, hint: hintOf(error) })
    return 'failed'
  }
}

/**
 * Only root may even read the size of the table of lists: it is 0600. Without rights there is no telling whether it is too small, and a
 * warning at each start would be about nothing on most machines.
 */
async function readValue(path: string, isMinimum: boolean, log: Log): Promise<number | undefined> {
  try {
    return Number((await readFile(path, 'utf8')).trim())
  } catch (error) {
    if (!isMinimum || (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    log.detail(1, 'Cannot see whether a value of the kernel is great enough', { path, hint: hintOf(error) })
    return undefined
  }
}

function hintOf(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return 'It is not there. Load the module nf_conntrack on the node.'
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return 'It may not be written. Set it on the node, or run kpng once with --init-only in a privileged init container.'
    default:
      return messageOf(error)
  }
}
