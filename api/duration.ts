const unitsMs: { readonly [unit: string]: number } = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** A duration as Go writes it (`1h30m`, `500ms`, `0`), in milliseconds. Undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const [, sign, rest = ''] = /^([+-]?)(.*)$/s.exec(text) ?? []
  if (rest === '0') return 0
  const parts = [...rest.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== rest) return undefined
  const ms = parts.reduce((sum, [, value, unit]) => sum + Number(value) * (unitsMs[unit as string] as number), 0)
  return sign === '-' ? -ms : ms
}

/** Milliseconds as Go prints a duration: `24h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s'
  if (ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor(ms / 60_000) % 60
  const seconds = `${(ms % 60_000) / 1000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
