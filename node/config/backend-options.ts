import { KpngError } from '@kpng/api'
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

/** How pods are told from everybody else, in the form of the backends' options. */
export type DetectLocal =
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly string[] }
  | { readonly mode: 'NodeCIDR' }
  | { readonly mode: 'BridgeInterface'; readonly name: string }
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string }

/** What the settings say to a backend in the kernel. */
export interface KernelBackendOptions {
  readonly nodePortAddresses: 'primary' | readonly string[]
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
  readonly detectLocal: DetectLocal
}

export interface KernelBackendSettings {
  readonly options: KernelBackendOptions
  /** What could not be passed on, as sentences. */
  readonly warnings: readonly string[]
}

export function kernelBackendOptions(settings: Settings): KernelBackendSettings {
  const { nodePortAddresses, warnings } = nodePortAddressesOf(settings.nodePortAddresses)
  const { masqueradeAll, masqueradeBit } = settings
  return {
    options: { nodePortAddresses, masqueradeAll, masqueradeBit, detectLocal: detectLocalOf(settings) },
    warnings,
  }
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

const keywords: ReadonlyMap<string, readonly string[]> = new Map([
  ['all', ['0.0.0.0/0', '::/0']],
  ['localhost', ['127.0.0.0/8', '::1/128']],
])

function nodePortAddressesOf(given: readonly string[]) {
  const warnings: string[] = []
  if (given.includes('localhost')) {
    warnings.push('nodePortAddresses has "localhost", and nftables serves no node ports on loopback.')
  }
  // A family without a CIDR is served everywhere, so "localhost" stays, though nobody is served there.
  const cidrs = given
    .filter((address) => address !== 'primary')
    .flatMap((address) => keywords.get(address) ?? [address])
  if (!given.includes('primary')) return { nodePortAddresses: cidrs, warnings }
  if (cidrs.length === 0) return { nodePortAddresses: 'primary' as const, warnings }
  warnings.push(
    'nodePortAddresses has "primary" beside CIDRs, which cannot be combined here: node ports are served on the CIDRs alone, and on every address of a family that has none. Add the node\'s own ranges to them.',
  )
  return { nodePortAddresses: cidrs, warnings }
}
