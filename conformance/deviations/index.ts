import { KpngError } from '@kpng/api'
import type { Deviations } from './deviation.js'
import { ebpf } from './ebpf.js'
import { iptables } from './iptables.js'
import { ipvs } from './ipvs.js'
import { kubeProxyIptables, kubeProxyNftables } from './kube-proxy.js'
import { userspace, userspaceIptables } from './userspace.js'

const byBackend: Readonly<Record<string, Deviations>> = {
  // It follows kube-proxy's nftables mode in every cell.
  nft: [],
  iptables,
  ipvs,
  ebpf,
  userspace,
  'userspace-iptables': userspaceIptables,
  'kube-proxy-nftables': kubeProxyNftables,
  'kube-proxy-iptables': kubeProxyIptables,
}

/** Whether a backend is one of kpng's own, which can be asked for kpng's extensions. */
export const isKpng = (backend: string | undefined): boolean =>
  backend !== undefined && ['nft', 'iptables', 'ipvs', 'ebpf', 'userspace', 'userspace-iptables'].includes(backend)

/** The backends whose deviations are named. */
export const backendNames: readonly string[] = Object.keys(byBackend)

export function deviationsOf(backend: string | undefined): Deviations {
  if (backend === undefined) return []
  const deviations = byBackend[backend]
  if (!deviations) {
    const known = backendNames.join(', ')
    throw new KpngError('usage', `There are no named deviations of "${backend}". Give one of ${known}, or none.`)
  }
  return deviations
}
