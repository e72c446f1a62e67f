import { familyOf, formatDuration, hostPort, KpngError, parseCidr, parseDuration, parseIp } from '@kpng/api'

/**
 * How the values of one kind of field are read and written. `name` is the field or the flag, for error messages. A reader returns
 * undefined for what Go decodes to "not set", and throws a KpngError for what Go would refuse.
 */
export interface Kind<T> {
  /** What a flag's value is, for the help: `<duration>`. */
  readonly placeholder: string
  fromFile(value: unknown, name: string): T | undefined
  fromFlag(text: string, name: string): T | undefined
  /** As it stands in a KubeProxyConfiguration. */
  toFile(value: T): unknown
  /** Of values with parts: those of the flag over those of the file. Default: the flag replaces what the file says. */
  over?(flag: T, file: T): T
}

/** A value as a flag would give it. */
export function flagText(fileValue: unknown): string {
  if (Array.isArray(fileValue)) return fileValue.join(',')
  if (typeof fileValue !== 'object' || fileValue === null) return String(fileValue)
  return Object.entries(fileValue)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
}

export const invalid = (name: string, value: unknown, expected: string): KpngError =>
  new KpngError('invalid', `${name} is ${JSON.stringify(value)}. ${expected}`)

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value
  throw invalid(name, value, 'Write a text, in quotes where YAML would read something else.')
}

/** A kind whose values are written as text in both places; an empty text is "not set". */
function textKind<T>(
  placeholder: string,
  read: (text: string, name: string) => T,
  toFile: (value: T) => unknown,
): Kind<T> {
  const fromText = (text: string, name: string) => (text === '' ? undefined : read(text, name))
  return { placeholder, fromFile: (value, name) => fromText(textOf(value, name), name), fromFlag: fromText, toFile }
}

export const text: Kind<string> = textKind(
  'name',
  (value) => value,
  (value) => value,
)

/** A node's name as kube-proxy takes it: Node objects are named in lower case, host names need not be. */
export const hostName: Kind<string> = textKind(
  'name',
  (value, name) => {
    const trimmed = value.trim().toLowerCase()
    if (trimmed !== '') return trimmed
    throw invalid(name, value, 'Write the name of the Node object, or leave it out.')
  },
  (value) => value,
)

export function oneOf<T extends string>(values: readonly T[]): Kind<T> {
  return textKind(
    'name',
    (value, name) => {
      if ((values as readonly string[]).includes(value)) return value as T
      throw invalid(name, value, `Write ${values.slice(0, -1).join(', ')} or ${values.at(-1)}.`)
    },
    (value) => value,
  )
}

export const boolean: Kind<boolean> = {
  placeholder: 'bool',
  fromFile: (value, name) => {
    if (typeof value === 'boolean') return value
    throw invalid(name, value, 'Write true or false.')
  },
  fromFlag: (value, name) => {
    if (value === 'true' || value === 'false') return value === 'true'
    throw invalid(name, value, 'Write true or false.')
  },
  toFile: (value) => value,
}

/** Names with true or false: kube-proxy's `featureGates`. No names is "not set". */
export const switches: Kind<Readonly<Record<string, boolean>>> = {
  placeholder: 'gates',
  fromFile: (value, name) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalid(name, value, 'Write a section with a name and true or false on each line.')
    const read = Object.entries(value).map(([gate, on]) => [gate, boolean.fromFile(on, `${name}.${gate}`)])
    return read.length === 0 ? undefined : Object.fromEntries(read)
  },
  fromFlag: (value, name) => {
    if (value === '') return undefined
    const read = value.split(',').map((part) => {
      const [, gate, on] = /^\s*([^=\s]+)\s*=\s*(true|false)\s*$/i.exec(part) ?? []
      if (gate === undefined) throw invalid(name, value, 'Write a name, = and true or false; several with commas.')
      return [gate, on?.toLowerCase() === 'true']
    })
    return Object.fromEntries(read)
  },
  toFile: (value) => value,
  over: (flag, file) => ({ ...file, ...flag }),
}

export function wholeNumber(least: number, most: number): Kind<number> {
  const check = (value: unknown, number: number, name: string): number => {
    if (Number.isInteger(number) && number >= least && number <= most) return number
    throw invalid(name, value, `Write a whole number from ${least} to ${most}.`)
  }
  return {
    placeholder: 'number',
    fromFile: (value, name) => check(value, typeof value === 'number' ? value : Number.NaN, name),
    fromFlag: (value, name) => check(value, /^-?\d+$/.test(value) ? Number(value) : Number.NaN, name),
    toFile: (value) => value,
  }
}

/** A duration in milliseconds. With `zeroIsUnset`, 0 stands for the default, as kube-proxy's defaulting has it. */
export function duration(options: { readonly zeroIsUnset: boolean }): Kind<number> {
  const read = (value: unknown, name: string) => {
    const ms = typeof value === 'string' ? parseDuration(value) : undefined
    if (ms === undefined) throw invalid(name, value, 'Write a duration such as 30s, 500ms or 1h30m.')
    if (ms < 0) throw invalid(name, value, 'A duration must not be negative: write 0s or more.')
    return ms
  }
  return {
    placeholder: 'duration',
    fromFile: (value, name) => {
      const ms = read(value, name)
      return ms === 0 && options.zeroIsUnset ? undefined : ms
    },
    // A flag exists only if a user wrote it, so its 0 is meant.
    fromFlag: read,
    toFile: formatDuration,
  }
}

export const ipAddress: Kind<string> = textKind(
  'ip',
  (value, name) => {
    if (parseIp(value)) return value
    throw invalid(name, value, 'Write an IP address such as 0.0.0.0 or ::.')
  },
  (value) => value,
)

/** `address:port` or `[address]:port`; a missing port is the one of kube-proxy. */
export function addressAndPort(defaultPort: number): Kind<string> {
  const read = (value: string, name: string): string => {
    const complete = parseIp(value) ? hostPort(value, defaultPort) : value
    const [, v6, v4, port = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(complete) ?? []
    const address = v6 ?? v4 ?? ''
    if (!parseIp(address) || familyOf(address) !== (v6 === undefined ? 'IPv4' : 'IPv6')) {
      throw invalid(
        name,
        value,
        `Write an IP address and a port such as 0.0.0.0:${defaultPort} or [::]:${defaultPort}.`,
      )
    }
    if (Number(port) < 1 || Number(port) > 65535) {
      throw invalid(name, value, `Its port is "${port}"; a port is 1 to 65535.`)
    }
    return complete
  }
  return textKind('ip:port', read, (value) => value)
}

function checkedCidr(cidr: string, name: string, keywords: readonly string[]): string {
  // As in kube-proxy, no spaces around it.
  if (keywords.includes(cidr) || (cidr === cidr.trim() && parseCidr(cidr))) return cidr
  const words = keywords.length > 0 ? `, or one of ${keywords.join(', ')}` : ''
  throw invalid(name, cidr, `Write a CIDR such as 10.0.0.0/8 or fd00::/64${words}.`)
}

/** CIDRs in one text, with commas between them: kube-proxy's `clusterCIDR`. */
export const cidrsInText: Kind<readonly string[]> = textKind(
  'cidrs',
  (value, name) => value.split(',').map((cidr) => checkedCidr(cidr, name, [])),
  (value) => value.join(','),
)

/** A list of CIDRs and keywords: kube-proxy's `nodePortAddresses`. An empty list is "not set". */
export function cidrList(keywords: readonly string[]): Kind<readonly string[]> {
  return {
    placeholder: 'cidrs',
    fromFile: (value, name) => {
      if (!Array.isArray(value)) throw invalid(name, value, 'Write a list.')
      if (value.length === 0) return undefined
      return value.map((cidr, index) => {
        const place = `${name}[${index}]`
        return checkedCidr(textOf(cidr, place), place, keywords)
      })
    },
    fromFlag: (value, name) =>
      value === '' ? undefined : value.split(',').map((cidr) => checkedCidr(cidr, name, keywords)),
    toFile: (value) => value,
  }
}
