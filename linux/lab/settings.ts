// Settings of a namespace, made before it has any interface: new interfaces take over what `default` says.

type Setting = readonly [file: string, value: number]

const always: readonly Setting[] = [
  // Duplicate address detection keeps an address unusable for a second.
  ['ipv6/conf/default/accept_dad', 0],
  ['ipv6/conf/all/accept_dad', 0],
  // Refusals must come each time, not a few times per second.
  ['ipv4/icmp_ratelimit', 0],
  ['ipv6/icmp/ratelimit', 0],
  // Answers may come back another way than the proxy under test sent the question.
  ['ipv4/conf/default/rp_filter', 0],
  ['ipv4/conf/all/rp_filter', 0],
  ['ipv4/conf/all/send_redirects', 0],
  ['ipv4/conf/default/send_redirects', 0],
]

const byRole: Readonly<Record<Role, readonly Setting[]>> = {
  host: [],
  router: [
    ['ipv4/ip_forward', 1],
    ['ipv6/conf/all/forwarding', 1],
    ['ipv6/conf/default/forwarding', 1],
  ],
  // IPv6 sockets may not be bound to single addresses of a range that is local as a whole.
  gateway: [['ipv6/ip_nonlocal_bind', 1]],
}

/** What a namespace is in a lab: a `router` forwards packets, a `gateway` answers at every address of a range. */
export type Role = 'host' | 'router' | 'gateway'

/** A shell script that makes the settings of the namespace that it runs in. Older kernels lack some of them and do not need them. */
export const settingsScript = (role: Role): string =>
  [...always, ...byRole[role]]
    .map(([file, value]) => `[ ! -e /proc/sys/net/${file} ] || echo ${value} > /proc/sys/net/${file} || exit 1\n`)
    .join('')
