import { KpngError } from '@kpng/api'
import type { DetectLocal } from '@kpng/dataplane'
import type { Settings } from './settings.js'

/** The modes of kube-proxy that have a backend here, and its name. */
export const backendsByMode: { readonly [mode: string]: string } = { nftables: 'nft' }

/** The backend for a mode as kube-proxy names it. No mode is the platform's default. */
export function backendOfMode(mode: string, backends: { readonly [mode: string]: string } = backendsByMode): string {
  const backend = backends[mode === '' ? 'nftables' : mode]
  if (backend !== undefined) return backend
  const there = Object.keys(backends).join(', ')
  throw new KpngError(
    'unsupported',
    `mode is "${mode}", which kpng has no backend for. Set mode to one that is there: ${there}; or leave it empty for nftables.`,
  )
}

/** What the settings say to a backend in the kernel. */
export interface KernelBackendOptions {
  readonly nodePortAddresses: readonly string[]
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
  readonly detectLocal: DetectLocal
  readonly dropInvalid: boolean
}

export interface KernelBackendSettings {
  readonly options: KernelBackendOptions
  /** What could not be passed on, as sentences. */
  readonly warnings: readonly string[]
}

const noClusterCidr =
  'clusterCIDR is empty, so pods cannot be told from other clients. Clients outside the cluster may get no answer from a cluster IP, and a ' +
  'pod on a node without endpoints cannot use the external addresses of a Service with externalTrafficPolicy Local. ' +
  "Give your pods' ranges with --cluster-cidr, or choose another --detect-local-mode."

export function kernelBackendOptions(settings: Settings): KernelBackendSettings {
  const { nodePortAddresses, masqueradeAll, masqueradeBit, conntrackTcpBeLiberal, detectLocalMode, clusterCidrs } =
    settings
  const warnings = [
    ...(nodePortAddresses.includes('localhost')
      ? ['nodePortAddresses has "localhost", but nftables does not serve node ports on loopback addresses.']
      : []),
    ...(detectLocalMode === 'ClusterCIDR' && clusterCidrs.length === 0 ? [noClusterCidr] : []),
  ]
  const options = {
    ...{ nodePortAddresses, masqueradeAll, masqueradeBit, detectLocal: detectLocalOf(settings) },
    // As in kube-proxy: if conntrack is liberal, packets outside the TCP window are not invalid.
    dropInvalid: !conntrackTcpBeLiberal,
  }
  return { options, warnings }
}

function detectLocalOf(settings: Settings): DetectLocal {
  switch (settings.detectLocalMode) {
    case 'ClusterCIDR':
      return { mode: 'ClusterCIDR', cidrs: settings.clusterCidrs }
    case 'NodeCIDR':
      return { mode: 'NodeCIDR' }
    case 'BridgeInterface':
      return { mode: 'BridgeInterface', name: settings.bridgeInterface }
    case 'InterfaceNamePrefix':
      return { mode: 'InterfaceNamePrefix', prefix: settings.interfaceNamePrefix }
  }
}
