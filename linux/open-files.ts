import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import type { Log } from '@kpng/api'

/** How many files this process may open. Node raises the soft limit to the hard one at its start. Undefined if it cannot be read. */
export function openFilesLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}

/** How many files this process has open. Undefined if it cannot be read. */
export function openFiles(): number | undefined {
  try {
    // Linux 6.2 and later has the number ready, and gives it even if no more files can be opened.
    return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}

export interface OpenFilesOptions {
  readonly log: Log
  /** Ends it. */
  readonly signal: AbortSignal
  /** How often it looks. Default 10,000. */
  readonly checkIntervalMs?: number
  /** How long until the same is said again. Default 600,000. */
  readonly repeatMs?: number
}

const warnAbove = 0.8
const calmBelow = 0.7

/** Warns before this process has no file descriptors left, while there are some to find out what uses them. */
export function watchOpenFiles(options: OpenFilesOptions): void {
  const { log, signal, checkIntervalMs = 10_000, repeatMs = 600_000 } = options
  let limit = openFilesLimit()
  if (limit === undefined || signal.aborted) return
  let warnedAt: number | undefined
  const check = () => {
    const open = openFiles()
    // The limit of a process can be changed while it runs. It cannot be read if no more files can be opened.
    limit = openFilesLimit() ?? limit
    if (open === undefined || limit === undefined) return
    if (open > limit * warnAbove) {
      if (warnedAt !== undefined && performance.now() - warnedAt < repeatMs) return
      warnedAt = performance.now()
      log.warn(
        'Most of the files that kpng may open are open. Raise the limit (LimitNOFILE= of a systemd unit, `ulimit -n`), or find out who holds so many connections',
        { open, limit, ...uses() },
      )
    } else if (warnedAt !== undefined && open < limit * calmBelow) {
      warnedAt = undefined
      log.info('The number of open files is well below the limit again', { open, limit })
    }
  }
  const timer = setInterval(check, checkIntervalMs).unref()
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
}

/** How many of the open files are of which kind. Empty if that cannot be found out. */
function uses(): { readonly [kind: string]: number } {
  try {
    const netlinkInodes = new Set(
      readFileSync('/proc/self/net/netlink', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/).at(-1)),
    )
    const counts = { sockets: 0, netlinkSockets: 0, others: 0 }
    for (const fd of readdirSync('/proc/self/fd')) {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(linkOf(fd)) ?? []
      counts[inode === undefined ? 'others' : netlinkInodes.has(inode) ? 'netlinkSockets' : 'sockets']++
    }
    return counts
  } catch {
    return {}
  }
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    // It was the folder itself, or is closed by now.
    return ''
  }
}
