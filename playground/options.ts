import { KpngError, type Log, silentLog } from '@kpng/api'
import { type EchoIdentity, EchoServer, type PodServer } from './pods/echo-server.js'
import type { StreamingLists } from './server/open-watch.js'
import { parseCidr } from './services/cidr.js'

export interface PlaygroundOptions {
  /** Port of the API server on `address`. Default 0: a free one. */
  port?: number
  /** Loopback address the API server listens on. Default 127.0.0.1. */
  address?: string
  /** Folder that keeps the objects, the certificates and the token across restarts. Default: none, all is forgotten. */
  dataDir?: string
  /** Where the kubeconfig is written. Default: `kubeconfig` in `dataDir`, or in a temporary folder that `close()` removes. */
  kubeconfigPath?: string
  /** Bearer token of the only user. Default: random. */
  token?: string
  /** The sample nodes. Default: one, called `playground`. `[]` for none. */
  nodeNames?: readonly string[]
  /** Zone label of each node, by node name. Default: none. */
  zones?: Readonly<Record<string, string>>
  /** Ranges of cluster IPs, one of each IP family at most; the first family is the default one. Default 127.96.0.0/16. */
  serviceCidrs?: readonly string[]
  /** Range of pod addresses. Default 127.10.0.0/16, on loopback so that pods in this process can listen there. */
  podCidr?: string
  /** IPv6 addresses of this machine that pods may use, one each, besides their IPv4 one. Default none: loopback has only ::1. */
  podIpv6Addresses?: readonly string[]
  /** Node ports, both included. Default 30000-32767. */
  nodePorts?: { readonly first: number; readonly last: number }
  /** The address of the nodes. Default 127.0.0.1. */
  nodeAddress?: string
  /** What runs in a pod. Default: an echo server in this process. */
  podServer?: (identity: EchoIdentity) => PodServer
  /** Whether pods are scheduled and listen. Default true; false: Pods are only objects, for tests that set their status. */
  runPods?: boolean
  /** Milliseconds between a pod's start and its readiness. Default 0. */
  podReadyDelayMs?: number
  /** Seconds after which a deleted pod is gone, however long its own grace period is. Default 5. */
  maxGracePeriodSeconds?: number
  /** Changes kept for watches that resume; older versions answer 410. Default 5000. */
  changeLogSize?: number
  /** Milliseconds between bookmarks of a watch. Default 60000. */
  bookmarkIntervalMs?: number
  /** Whether `sendInitialEvents` is supported, refused or ignored (as before 1.27). Default supported. */
  streamingLists?: StreamingLists
  /** Whether watches get the bookmarks they ask for. Default true. */
  bookmarks?: boolean
  /** Milliseconds each answer is delayed from the start. Default 0. */
  answerDelayMs?: number
  /** Fraction (0 to 1) of the requests that fail with 500 from the start. Default 0. */
  failFraction?: number
  /** Default: silent. */
  log?: Log
}

export type Settings = Required<Omit<PlaygroundOptions, 'dataDir' | 'kubeconfigPath' | 'token'>> &
  Pick<PlaygroundOptions, 'dataDir' | 'kubeconfigPath' | 'token'>

const defaults: Settings = {
  port: 0,
  address: '127.0.0.1',
  nodeNames: ['playground'],
  zones: {},
  serviceCidrs: ['127.96.0.0/16'],
  podCidr: '127.10.0.0/16',
  podIpv6Addresses: [],
  nodePorts: { first: 30000, last: 32767 },
  nodeAddress: '127.0.0.1',
  podServer: (identity) => new EchoServer(identity),
  runPods: true,
  podReadyDelayMs: 0,
  maxGracePeriodSeconds: 5,
  changeLogSize: 5000,
  bookmarkIntervalMs: 60_000,
  streamingLists: 'supported',
  bookmarks: true,
  answerDelayMs: 0,
  failFraction: 0,
  log: silentLog,
}

const refuse = (option: keyof PlaygroundOptions, value: unknown, why: string): never => {
  throw new KpngError('usage', `The playground's option ${option} is ${JSON.stringify(value)}; ${why}.`)
}

/** The options with their defaults, checked once. */
export function settingsOf(options: PlaygroundOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const settings: Settings = { ...defaults, ...given }
  const { serviceCidrs, podCidr, nodePorts, port } = settings
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    refuse('port', port, 'give a port from 0 (a free one) to 65535')
  const families = serviceCidrs.map((cidr) => parseCidr(cidr)?.family)
  if (families.includes(undefined)) refuse('serviceCidrs', serviceCidrs, 'give ranges like 127.96.0.0/16')
  if (families.length === 0 || new Set(families).size !== families.length) {
    refuse('serviceCidrs', serviceCidrs, 'give one range, or one of each IP family')
  }
  if (parseCidr(podCidr)?.family !== 'IPv4') refuse('podCidr', podCidr, 'give an IPv4 range like 127.10.0.0/16')
  if (!(nodePorts.first >= 1 && nodePorts.last <= 65535 && nodePorts.first <= nodePorts.last)) {
    refuse('nodePorts', nodePorts, 'give a first and a last port between 1 and 65535')
  }
  for (const name of ['maxGracePeriodSeconds', 'podReadyDelayMs', 'answerDelayMs', 'failFraction'] as const) {
    if (!(settings[name] >= 0)) refuse(name, settings[name], 'give zero or more')
  }
  for (const name of ['changeLogSize', 'bookmarkIntervalMs'] as const) {
    if (!(settings[name] >= 1)) refuse(name, settings[name], 'give one or more')
  }
  return settings
}
