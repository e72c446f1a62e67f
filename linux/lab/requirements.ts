import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { KpngError, messageOf } from '@kpng/api'

/** The Debian packages of programs that labs and tests need. */
const packages: Readonly<Record<string, string>> = { ip: 'iproute2', nft: 'nftables', ip6tables: 'iptables' }

const isInstalled = (program: string): boolean =>
  // Only whether it could be started: few programs agree on a flag that does nothing.
  (spawnSync(program, ['--version'], { stdio: 'ignore' }).error as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT'

/** Why a lab, in which these programs are needed too, cannot be made on this machine; undefined if it can. */
export function whyNoLab(...programs: string[]): string | undefined {
  if (process.platform !== 'linux') return `The lab is made of Linux network namespaces; this is ${process.platform}.`
  if (process.getuid?.() !== 0) return 'The lab needs root to make network namespaces; run it with sudo.'
  if (!existsSync('/proc/sys/net/ipv6')) return 'This machine has IPv6 disabled, and the lab is dual stack; enable it.'
  for (const program of ['ip', ...programs]) {
    if (isInstalled(program)) continue
    return `${program} is not installed or not in PATH. It comes with the package ${packages[program] ?? program}.`
  }
  const { status } = spawnSync('unshare', ['--net', 'true'], { stdio: 'ignore' })
  return status === 0 ? undefined : 'Network namespaces cannot be made here; a container may need to be privileged.'
}

export function requireLab(): void {
  const why = whyNoLab()
  if (why !== undefined) throw new KpngError('unsupported', why)
}

/**
 * Why tests on the kernel that need these programs are skipped; undefined if they are not. The reason is printed, so that nobody
 * takes a skipped test for one that passed.
 */
export function whySkipped(suite: string, ...programs: string[]): string | undefined {
  const why = whyNoLab(...programs) ?? whyNoKoffi()
  if (why !== undefined) console.warn(`SKIPPED: ${suite}: ${why}`)
  return why
}

/** Synchronous, because it decides which tests are defined. */
function whyNoKoffi(): string | undefined {
  try {
    createRequire(import.meta.url)('koffi')
    return undefined
  } catch (error) {
    return `koffi cannot be loaded (${messageOf(error)}).`
  }
}
