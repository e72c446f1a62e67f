// How the benchmarks start kube-proxy, as a peer that is given by the path of its program.

/**
 * kube-proxy's arguments. It may not set the size of the machine's conntrack table from inside a network namespace.
 * @param mode nftables or iptables
 */
export const kubeProxyArgs = (mode, kubeconfig) => [
  ...['--kubeconfig', kubeconfig, '--hostname-override', 'bench', '--proxy-mode', mode],
  ...['--conntrack-max-per-core', '0', '--conntrack-min', '0'],
  ...['--conntrack-tcp-timeout-established', '0s', '--conntrack-tcp-timeout-close-wait', '0s'],
]
