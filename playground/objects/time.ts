/** `metav1.Time`: whole seconds. */
export const timestamp = (milliseconds = Date.now()): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`

/** `metav1.MicroTime`. */
export const microTimestamp = (milliseconds = Date.now()): string =>
  `${new Date(milliseconds).toISOString().slice(0, 23)}000Z`

const units: readonly [string, number][] = [
  ['y', 365 * 24 * 3600],
  ['d', 24 * 3600],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
]

/** How long ago, the way `kubectl get` shows AGE: one unit, two while the first is still small. */
export function age(since: string | null | undefined, now = Date.now()): string {
  if (!since) return '<unknown>'
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000))
  if (seconds < 120) return `${seconds}s`
  const index = units.findIndex(([, size]) => seconds >= size * (size === 60 ? 2 : 1))
  const [unit, size] = units[index] ?? ['s', 1]
  const whole = Math.floor(seconds / size)
  const [nextUnit, nextSize] = units[index + 1] ?? ['', 1]
  const rest = nextUnit === '' ? 0 : Math.floor((seconds % size) / nextSize)
  return whole < 10 && rest > 0 ? `${whole}${unit}${rest}${nextUnit}` : `${whole}${unit}`
}
