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
