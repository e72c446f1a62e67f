import { readFileSync } from 'node:fs'
import { KpngError } from '@kpng/api'

/** The capabilities that kpng uses, as bit numbers (linux/capability.h). */
const bits = {
  CAP_NET_BIND_SERVICE: 10,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
  CAP_SYS_ADMIN: 21,
  CAP_SYS_RESOURCE: 24,
  CAP_PERFMON: 38,
  CAP_BPF: 39,
} as const

export type Capability = keyof typeof bits

/**
 * Whether this process has a capability in effect. Undefined if that is unknown, for instance because this is not Linux.
 * @param status the text of /proc/self/status; for tests
 */
export function hasCapability(capability: Capability, status = ownStatus()): boolean | undefined {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1]
  return effective === undefined ? undefined : ((BigInt(`0x${effective}`) >> BigInt(bits[capability])) & 1n) === 1n
}

/** What to do after EPERM or EACCES, as a sentence. */
export function rightsAdvice(capability: Capability, status = ownStatus()): string {
  if (!hasCapability(capability, status)) return `Run kpng as root, or give it the capability ${capability}.`
  return `kpng has the capability ${capability}, so something else forbids it: a user namespace, seccomp, or a security module.`
}

/**
 * Throws if this process may not change the network here; the message says why. If the capabilities are unknown, the kernel will
 * refuse the first request.
 * @param what it wants to change, such as `nftables`
 */
export function checkNetworkRights(what: string): void {
  if (process.platform !== 'linux') {
    throw new KpngError(
      'unsupported',
      `${what} is a part of Linux, and this is ${process.platform}. Use the userspace backend here.`,
    )
  }
  if (hasCapability('CAP_NET_ADMIN') === false) {
    throw new KpngError('unsupported', `kpng may not change the network here. ${rightsAdvice('CAP_NET_ADMIN')}`)
  }
}

function ownStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8')
  } catch {
    return ''
  }
}
