import type { ChainNames } from './names.js'
import { countInvalid } from './packet-counts.js'
import type { Place } from './place.js'
import { type Chains, comment, ruleOf, type Table } from './rule.js'
import { partsOf } from './save.js'
import type { SharedList } from './service-port.js'

// The chains that all service ports share, and the way from the system's chains to them. They do what kube-proxy's do.

export interface ChainSettings {
  readonly names: ChainNames
  /** The name of this kpng. */
  readonly name: string
  /** The bit of the packet mark that means "to be masqueraded". */
  readonly masqueradeBit: number
  /** Whether forwarded packets that conntrack takes for invalid are dropped. */
  readonly dropInvalid: boolean
  /** Whether iptables knows `--random-fully`. */
  readonly randomFully: boolean
  /** Whether packets are counted for metrics. */
  readonly counters: boolean
}

/** A rule of a system's chain that leads to one of ours. */
export interface Jump {
  readonly table: Table
  readonly from: string
  readonly to: string
  readonly rule: string
}

/** Put before the rules of others, the last one first. */
export function jumpsTo(names: ChainNames): Jump[] {
  const isNew = '-m conntrack --ctstate NEW'
  const jump = (table: Table, from: string, to: string, what: string, match = ''): Jump => ({
    ...{ table, from, to },
    rule: ruleOf(match, comment(`kubernetes ${what}`), `-j ${to}`),
  })
  const filter = (from: string, to: string, what: string, match?: string) => jump('filter', from, to, what, match)
  const hooks = ['INPUT', 'FORWARD', 'OUTPUT']
  return [
    // kube-proxy has none from OUTPUT: its node gets no answer from external IPs without endpoints.
    ...hooks.map((from) => filter(from, names.externalServices, 'externally-visible service portals', isNew)),
    filter('INPUT', names.nodePorts, 'health check service ports'),
    ...['FORWARD', 'OUTPUT'].map((from) => filter(from, names.services, 'service portals', isNew)),
    filter('FORWARD', names.forward, 'forwarding rules'),
    ...hooks.map((from) => filter(from, names.firewall, 'load balancer firewall', isNew)),
    ...['OUTPUT', 'PREROUTING'].map((from) => jump('nat', from, names.services, 'service portals')),
    jump('nat', 'POSTROUTING', names.postrouting, 'postrouting rules'),
  ]
}

/** The shared chains that a list of rules is part of. */
export const chainOfList: Readonly<Record<SharedList, readonly [Table, keyof ChainNames]>> = {
  services: ['nat', 'services'],
  guards: ['nat', 'services'],
  wholeAddresses: ['nat', 'services'],
  nodePorts: ['nat', 'nodePorts'],
  refusedServices: ['filter', 'services'],
  refusedExternals: ['filter', 'externalServices'],
  firewall: ['filter', 'firewall'],
}

/** What KUBE-SERVICES of the table nat is made of. */
export interface ServicesLists {
  readonly services: readonly string[]
  readonly guards: readonly string[]
  readonly whole: readonly string[]
}

/** KUBE-SERVICES of the table nat: an address with a port, then whole addresses, then node ports. */
export function servicesChain({ services, guards, whole }: ServicesLists, place: Place, names: ChainNames): string[] {
  const wholeAddresses = new Set(whole.map((rule) => partsOf(rule).destination))
  const needed = whole.length === 0 ? [] : guards.filter((rule) => wholeAddresses.has(partsOf(rule).destination))
  const text = comment('kubernetes service nodeports; NOTE: this must be the last rule in this chain')
  return [
    ...services,
    ...needed,
    ...whole,
    ...place.nodePorts.map((match) => ruleOf(match, text, `-j ${names.nodePorts}`)),
  ]
}

/** The chains that do not depend on Services. */
export function constantChains(settings: ChainSettings, place: Place): Record<Table, Chains> {
  const { names, name, dropInvalid, randomFully, counters } = settings
  const bit = `0x${(2 ** settings.masqueradeBit).toString(16)}`
  const owner = [comment(`these chains belong to kpng (${name})`)]
  const outside = place.pods.length > 1 ? place.pods.map((pods) => ruleOf(pods, '-j RETURN')) : []
  const nat = new Map([
    [names.owner, owner],
    [names.markMasquerade, [`-j MARK --set-xmark ${bit}/${bit}`]],
    [
      names.postrouting,
      [
        `-m mark ! --mark ${bit}/${bit} -j RETURN`,
        // So that it is not masqueraded again if it passes the stack once more.
        `-j MARK --set-xmark ${bit}/0x0`,
        ruleOf(
          comment('kubernetes service traffic requiring SNAT'),
          '-j MASQUERADE',
          randomFully ? '--random-fully' : '',
        ),
      ],
    ],
  ])
  if (outside.length > 0) nat.set(names.markOutside, [...outside, `-j ${names.markMasquerade}`])
  const forward = [
    // Otherwise they would reset the connection (kubernetes #74839).
    ...(dropInvalid ? [ruleOf('-m conntrack --ctstate INVALID', counters ? countInvalid : '', '-j DROP')] : []),
    ruleOf(comment('kubernetes forwarding rules'), `-m mark --mark ${bit}/${bit} -j ACCEPT`),
    ruleOf(comment('kubernetes forwarding conntrack rule'), '-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT'),
  ]
  const filter = new Map([
    [names.owner, owner],
    [names.forward, forward],
  ])
  return { nat, filter }
}

/** KUBE-NODEPORTS of the table filter. */
export function nodePortFilter({ family }: Place, withLoopback: boolean, healthChecks: readonly string[]): string[] {
  const localnet = ruleOf(
    '! -s 127.0.0.0/8 -d 127.0.0.0/8',
    comment('block incoming localnet connections'),
    '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
  )
  // Once loopback addresses are routed, other machines could reach local programs there (kubernetes #90259).
  return [...(withLoopback && family === 'IPv4' ? [localnet] : []), ...healthChecks]
}
