import { KpngError } from '@kpng/api'
import type { DetectLocal } from '@kpng/dataplane'
import type { Settings } from './settings.js'

/** The modes of kube-proxy that have a backend here, and its name. */
export const backendsByMode: { readonly [mode: string]: string } = {
  nftables: 'nft',
  iptables: 'iptables',
  userspace: 'userspacelin',
  ipvs: 'ipvs',
  kernelspace: 'winkernel',
}

/** The backend for a mode as kube-proxy names it. No mode is the platform's default. */
export function backendOfMode(mode: string, backends: { readonly [mode: string]: string } = backendsByMode): string {
  const known = mode === '' ? 'nftables' : mode
  if (Object.hasOwn(backends, known)) return backends[known] as string
  const there = Object.keys(backends).join(', ')
  throw new KpngError(
    'unsupported',
    `mode is "${mode}", which kpng has no backend for. Set mode to one that is there: ${there}; or leave it empty for nftables.`,
  )
}

/** Refuses a file for another mode than that of the backend that was started: another data plane is not what it asks for. */
export function checkMode(mode: string, own: KernelMode | 'kernelspace'): void {
  if (mode === '' || mode === own) return
  const backend = backendOfMode(mode)
  throw new KpngError(
    'unsupported',
    `mode is "${mode}", but this backend is for ${own}. Use to-${backend}, or set mode to ${own}.`,
  )
}

export type KernelMode = 'nftables' | 'iptables' | 'ipvs'

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

/** @param mode `ebpf`: nftables, with sockets of the node on top of it */
export function kernelBackendOptions(
  settings: Settings,
  mode: KernelMode | 'ebpf' = 'nftables',
): KernelBackendSettings {
  const { nodePortAddresses, masqueradeAll, masqueradeBit, conntrackTcpBeLiberal, detectLocalMode, clusterCidrs } =
    settings
  const warnings: string[] = []
  if (nodePortAddresses.includes('localhost') && (mode !== 'iptables' || !settings.localhostNodePorts)) {
    const why =
      mode === 'iptables' ? 'localhostNodePorts is off' : `${mode} does not serve node ports on loopback addresses`
    warnings.push(`nodePortAddresses has "localhost", but ${why}.`)
  }
  if (detectLocalMode === 'ClusterCIDR' && clusterCidrs.length === 0) {
    warnings.push(
      'No cluster CIDR is set, so kpng cannot tell pods from other clients: connections from outside the cluster to a cluster IP are not masqueraded. Set --cluster-cidr (clusterCIDR) to the ranges of the pods, or --detect-local-mode to NodeCIDR.',
    )
  }
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
