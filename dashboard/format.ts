// Numbers, times and sizes as people read them.

const grouped = new Intl.NumberFormat('en')

/** `5,000` */
export const count = (value: number): string => grouped.format(Math.round(value))

/** `1 Service`, `5,000 Services` */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** How long something has lasted: `0 s`, `42 s`, `8 min`, `3 h 13 min`, `12 d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms / 1000)
  if (seconds < 90) return `${Math.floor(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  const hours = Math.floor(seconds / 3600)
  if (hours < 36) return `${hours} h ${Math.floor((seconds % 3600) / 60)} min`
  return `${Math.floor(seconds / 86_400)} d`
}

/** Without the minutes of hours. */
export const shortDuration = (ms: number): string => duration(ms).replace(/ h .*/, ' h')

/** `just now`, `4 s ago` */
export const ago = (ms: number): string => (ms < 1500 ? 'just now' : `${shortDuration(ms)} ago`)

/** `0.42 ms`, `12.5 ms`, `140 ms`, `2.5 s` */
export function milliseconds(ms: number): string {
  if (ms >= 10_000) return shortDuration(ms)
  if (ms >= 999.5) return `${(ms / 1000).toFixed(1)} s`
  // What would be rounded up to the next width has that width.
  return `${ms < 9.995 ? ms.toFixed(2) : ms < 99.95 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** `640 B`, `1.5 MB` */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let size = value
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`
}

/** `14:05:09` */
export const timeOfDay = (unixMs: number): string => new Date(unixMs).toLocaleTimeString('en-GB')

/** `14:05:09.042` */
export const preciseTime = (unixMs: number): string =>
  `${timeOfDay(unixMs)}.${String(new Date(unixMs).getMilliseconds()).padStart(3, '0')}`
