import { isZero } from './zero.js'

/**
 * Which of kube-proxy's sections by mode counts. A file that names no mode is read by kube-proxy as one for iptables, so what it says
 * there is what its author meant; but kpng's data plane is nftables, and a value given for that comes first.
 */
const sectionsByMode: { readonly [mode: string]: readonly string[] } = {
  '': ['nftables', 'iptables'],
  nftables: ['nftables'],
  iptables: ['iptables'],
  ipvs: ['ipvs', 'iptables'],
}

/** The path that a setting is read from: of several, the first in the mode's sections that has a value other than Go's zero. */
export function pathFor(
  paths: readonly [string, ...string[]],
  mode: string,
  valueAt: (path: string) => unknown,
): string {
  if (paths.length === 1) return paths[0]
  const sections = sectionsByMode[mode] ?? []
  const candidates = sections.flatMap((section) => paths.filter((path) => path.startsWith(`${section}.`)))
  return candidates.find((path) => !isZero(valueAt(path))) ?? candidates[0] ?? paths[0]
}
