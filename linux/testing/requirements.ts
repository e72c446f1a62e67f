import { spawnSync } from 'node:child_process'
import { loadLibc } from '../libc.js'

/** The Debian packages of programs that tests need. */
const packages: Readonly<Record<string, string>> = { ip: 'iproute2', nft: 'nftables' }

const isInstalled = (program: string): boolean =>
  ['--version', '-V'].some((flag) => spawnSync(program, [flag], { stdio: 'ignore' }).status === 0)

/**
 * Why tests in network namespaces, which need these programs too, cannot run here; undefined if they can. The reason is printed,
 * so that nobody takes a skipped test for one that passed.
 */
export function whyNoNamespaces(suite: string, ...programs: string[]): string | undefined {
  const reason = reasonAgainst(['ip', ...programs])
  if (reason !== undefined) console.warn(`SKIPPED: ${suite}: ${reason}`)
  return reason
}

function reasonAgainst(programs: readonly string[]): string | undefined {
  if (process.platform !== 'linux') return `network namespaces are a part of Linux, and this is ${process.platform}`
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  for (const program of programs) {
    if (!isInstalled(program)) return `${program} is not installed (Debian package ${packages[program] ?? program})`
  }
  const { status } = spawnSync('unshare', ['--net', 'true'], { stdio: 'ignore' })
  return status === 0 ? undefined : 'network namespaces cannot be made here'
}

/** As `whyNoNamespaces`, for tests that make system calls themselves. */
export async function whyNoKernel(suite: string, ...programs: string[]): Promise<string | undefined> {
  const reason = whyNoNamespaces(suite, ...programs)
  if (reason !== undefined) return reason
  try {
    await loadLibc()
    return undefined
  } catch (error) {
    console.warn(`SKIPPED: ${suite}: ${(error as Error).message}`)
    return (error as Error).message
  }
}
