/**
 * Which of kube-proxy's sections by mode counts. A file that names no mode is read by kube-proxy as one for iptables, so what it says
 * there is what its author meant; but kpng's data plane is nftables, and a value given for that comes first.
 */
const sectionsByMode: ReadonlyMap<string, readonly string[]> = new Map([
  ['', ['nftables', 'iptables']],
  ['nftables', ['nftables']],
  ['iptables', ['iptables']],
  ['ipvs', ['ipvs', 'iptables']],
  // kube-proxy had this mode until 1.25, and read its periods there.
  ['userspace', ['iptables']],
  // kube-proxy reads the periods of this mode there too.
  ['kernelspace', ['iptables']],
])

const candidatesFor = (paths: readonly string[], mode: string): string[] =>
  (sectionsByMode.get(mode) ?? []).flatMap((section) => paths.filter((path) => path.startsWith(`${section}.`)))

/** The path that a setting is read from: of several, the first in the mode's sections that has a value other than Go's zero. */
export function pathFor(
  paths: readonly [string, ...string[]],
  mode: string,
  valueAt: (path: string) => unknown,
): string {
  if (paths.length === 1) return paths[0]
  const candidates = candidatesFor(paths, mode)
  return candidates.find((path) => !isZero(valueAt(path))) ?? candidates[0] ?? paths[0]
}

/** The paths of a setting that only other modes read. */
export const pathsOfOtherModes = (paths: readonly string[], mode: string): string[] =>
  paths.length === 1 && !paths[0]?.startsWith('ipvs.')
    ? []
    : paths.filter((path) => !candidatesFor(paths, mode).includes(path))

/**
 * Whether Go would have written the value for a field that nobody set. kubeadm writes every field into its ConfigMap, so most of
 * what stands there means nothing. `"0"` is a quantity, `"0s"` a duration.
 */
export function isZero(value: unknown): boolean {
  if (value === null || value === undefined) return true
  if (Array.isArray(value)) return value.length === 0
  if (typeof value === 'object') return Object.values(value).every(isZero)
  return value === '' || value === 0 || value === false || value === '0' || value === '0s'
}
