const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** Milliseconds since 1970 (whole ones: Kubernetes writes nanoseconds), or undefined when the text is no RFC 3339 time. */
export function rfc3339ToUnixMs(text: string): number | undefined {
  const match = rfc3339.exec(text)
  if (!match) return undefined
  const [, seconds = '', fraction = '.', zone = ''] = match
  const unixMs = Date.parse(`${seconds}${fraction.padEnd(4, '0').slice(0, 4)}${zone}`)
  return Number.isNaN(unixMs) ? undefined : unixMs
}
