import { ConformanceError } from './error.js'
import type { ConformanceOptions } from './options.js'

/** How kpng's own backends are called, as words after `to-local`. */
const kpngBackends: Readonly<Record<string, readonly string[]>> = {
  nft: ['to-nft', '--cluster-cidr', '{clusterCidr}'],
  userspace: ['to-userspacelin', '--capture', 'nft', '--cluster-cidr', '{clusterCidr}'],
  'userspace-iptables': ['to-userspacelin', '--capture', 'iptables', '--cluster-cidr', '{clusterCidr}'],
}

/** kube-proxy may not set the machine's conntrack size from inside a network namespace, so it is told to leave conntrack alone. */
const kubeProxy = (mode: string): readonly string[] => [
  'kube-proxy',
  ...['--kubeconfig', '{kubeconfig}', '--hostname-override', '{node}'],
  ...['--proxy-mode', mode, '--cluster-cidr', '{clusterCidr}'],
  ...['--conntrack-max-per-core', '0', '--conntrack-min', '0'],
  ...['--conntrack-tcp-timeout-established', '0s', '--conntrack-tcp-timeout-close-wait', '0s'],
]

/**
 * The command of a proxy that the kit knows by name.
 * @param kpng how kpng is called, such as `['kpng']`
 */
export function proxyNamed(backend: string, kpng: readonly string[], feed: ConformanceOptions['feed']): string[] {
  const words = kpngBackends[backend]
  if (words) {
    const source = feed === 'manifests' ? ['file', '-i', '{manifests}'] : ['kube', '--kubeconfig', '{kubeconfig}']
    return [...kpng, ...source, 'to-local', '--node-name', '{node}', ...words]
  }
  const mode = /^kube-proxy-(nftables|iptables)$/.exec(backend)?.[1]
  if (mode === undefined)
    throw new ConformanceError('usage', `There is no command for "${backend}". Give the proxy's command.`)
  if (feed === 'manifests')
    throw new ConformanceError('usage', `${backend} reads no manifests. Give the kubeconfig of an API server.`)
  return [...kubeProxy(mode)]
}
