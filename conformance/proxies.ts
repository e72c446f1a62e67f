import { KpngError } from '@kpng/api'
import type { ConformanceOptions } from './options.js'

/** How kpng's own backends are called, as words after `to-local`. */
const kpngBackends: Readonly<Record<string, readonly string[]>> = {
  nft: ['to-nft', '--cluster-cidr', '{clusterCidr}'],
  iptables: ['to-iptables', '--cluster-cidr', '{clusterCidr}'],
  ipvs: ['to-ipvs', '--cluster-cidr', '{clusterCidr}'],
  ebpf: ['to-ebpf', '--cluster-cidr', '{clusterCidr}', '--cgroup', '{cgroup}', '--bpffs', '{bpffs}'],
  userspace: ['to-userspacelin', '--capture', 'nft', '--cluster-cidr', '{clusterCidr}'],
  'userspace-iptables': ['to-userspacelin', '--capture', 'iptables', '--cluster-cidr', '{clusterCidr}'],
}

const knownBackends = [...Object.keys(kpngBackends), 'kube-proxy-nftables', 'kube-proxy-iptables']

/** kube-proxy may not set the machine's conntrack size from inside a network namespace, so it is told to leave conntrack alone. */
const kubeProxy = (mode: string): readonly string[] => [
  'kube-proxy',
  ...['--kubeconfig', '{kubeconfig}', '--hostname-override', '{node}'],
  ...['--proxy-mode', mode, '--cluster-cidr', '{clusterCidr}'],
  ...['--conntrack-max-per-core', '0', '--conntrack-min', '0'],
  ...['--conntrack-tcp-timeout-established', '0s', '--conntrack-tcp-timeout-close-wait', '0s'],
]

const kpngSource = (feed: ConformanceOptions['feed']): readonly string[] =>
  feed === 'manifests' ? ['file', '-i', '{manifests}'] : ['kube', '--kubeconfig', '{kubeconfig}']

/** The lab's state and socket must not replace those of a kpng which serves this machine. */
const kpngState = (feed: ConformanceOptions['feed']): readonly string[] => [
  '--agent-socket=',
  ...(feed === 'manifests' ? [] : ['--state-cache=']),
]

/**
 * The command of a proxy that the kit knows by name.
 * @param kpng how kpng is called, such as `['kpng']`
 */
export function proxyNamed(backend: string, kpng: readonly string[], feed: ConformanceOptions['feed']): string[] {
  const words = kpngBackends[backend]
  if (words) return [...kpng, ...kpngSource(feed), 'to-local', '--node-name', '{node}', ...words, ...kpngState(feed)]
  const mode = /^kube-proxy-(nftables|iptables)$/.exec(backend)?.[1]
  if (mode === undefined)
    throw new KpngError(
      'usage',
      `The kit knows no backend "${backend}". It knows ${knownBackends.join(', ')}; any other proxy needs its command.`,
    )
  if (feed === 'manifests')
    throw new KpngError('usage', `${backend} reads no manifests. Give the kubeconfig of an API server.`)
  return [...kubeProxy(mode)]
}

/** The command of a core that serves the objects to proxies. */
export const coreNamed = (kpng: readonly string[], feed: ConformanceOptions['feed']): string[] => [
  ...[...kpng, ...kpngSource(feed), 'to-api', '--listen', '{api}'],
]

/** The command for chaos: from an API server, and with a place for its state. */
export const chaosProxyNamed = (backend: string, kpng: readonly string[]): string[] =>
  proxyNamed(backend, kpng, { kubeconfig: '' }).map((word) =>
    word === '--state-cache=' ? '--state-cache={stateCache}' : word,
  )

/** Ports for the specialised proxy: the proxy under test has the usual ones. */
const otherPorts = ['--healthz-bind-address', '0.0.0.0:10266', '--metrics-bind-address', '127.0.0.1:10259']

/** Which specialised kpng runs beside a proxy. kube-proxy cannot be specialised, so kpng runs beside it, with rules of the same kind. */
const specialisedBackends: Readonly<Record<string, string>> = {
  nft: 'nft',
  iptables: 'iptables',
  ipvs: 'ipvs',
  ebpf: 'ebpf',
  'kube-proxy-nftables': 'nft',
  'kube-proxy-iptables': 'iptables',
}

/**
 * The command of the specialised proxy that the kit runs beside a proxy that it knows by name. Undefined if there is none: two
 * userspace proxies of kpng on one node overwrite each other's portals.
 */
export function specialisedProxyNamed(
  backend: string,
  kpng: readonly string[],
  feed: ConformanceOptions['feed'],
): string[] | undefined {
  const words = kpngBackends[specialisedBackends[backend] ?? '']
  if (!words) return undefined
  const named = [...kpngSource(feed), '--service-proxy-name', '{serviceProxyName}']
  return [...kpng, ...named, 'to-local', '--node-name', '{node}', ...words, ...kpngState(feed), ...otherPorts]
}

/** Puts values in the places that are written as `{name}`. */
export function fillPlaceholders(
  command: readonly string[],
  values: Readonly<Record<string, string | undefined>>,
): string[] {
  return command.map((part) =>
    part.replace(/\{([A-Za-z]+)\}/g, (whole, name: string) => {
      if (!Object.hasOwn(values, name)) return whole
      const value = values[name]
      if (value === undefined) {
        throw new KpngError('usage', `The proxy command has ${whole}, which this way of feeding does not give.`)
      }
      return value
    }),
  )
}

/** A command line as a list: words apart by spaces, with quotes where a word has some. No shell is involved. */
export function splitCommand(text: string): string[] {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (const character of text) {
    if (quote !== '') {
      if (character === quote) quote = ''
      else word += character
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + character
  }
  if (quote !== '') throw new KpngError('usage', `The command ${JSON.stringify(text)} has a quote that does not end.`)
  if (word !== undefined) words.push(word)
  return words
}
