import { writeFileSync } from 'node:fs'

// Written before any interface is made: new interfaces take over what `default` says.
const always: readonly (readonly [string, string])[] = [
  // Duplicate address detection keeps an address unusable for a second.
  ['ipv6/conf/default/accept_dad', '0'],
  ['ipv6/conf/all/accept_dad', '0'],
  // Refusals must come each time, not a few times a second.
  ['ipv4/icmp_ratelimit', '0'],
  ['ipv6/icmp/ratelimit', '0'],
  // Answers may come back another way than the proxy under test sent the question.
  ['ipv4/conf/default/rp_filter', '0'],
  ['ipv4/conf/all/rp_filter', '0'],
  ['ipv4/conf/all/send_redirects', '0'],
  ['ipv4/conf/default/send_redirects', '0'],
]

const byRole: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  router: [
    ['ipv4/ip_forward', '1'],
    ['ipv6/conf/all/forwarding', '1'],
    ['ipv6/conf/default/forwarding', '1'],
  ],
  // IPv6 sockets may not be bound to the single addresses of a range that is local as a whole.
  gateway: [['ipv6/ip_nonlocal_bind', '1']],
}

/** What a namespace is in the lab, as far as its settings go. */
export type Role = 'router' | 'gateway' | 'host'

/** Makes the settings of this network namespace; older kernels may lack one, and then do not need it. */
export function configureNamespace(role: string): void {
  for (const [name, value] of [...always, ...(byRole[role] ?? [])]) {
    try {
      writeFileSync(`/proc/sys/net/${name}`, value)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
