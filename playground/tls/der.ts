/**
 * Just enough of DER (X.690) to write an X.509 certificate: every value is a tag, a length and bytes. Each function returns
 * one finished value, so that a certificate reads like its ASN.1 definition.
 */
export function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export const sequence = (...content: Buffer[]): Buffer => der(0x30, ...content)
export const set = (...content: Buffer[]): Buffer => der(0x31, ...content)
export const octets = (content: Buffer): Buffer => der(0x04, content)
export const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]))
export const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text, 'utf8'))

/** A positive INTEGER: DER wants a leading zero when the first bit is set, and no needless zeros. */
export function integer(value: number | Buffer): Buffer {
  let bytes = typeof value === 'number' ? Buffer.from([value]) : value
  while (bytes.length > 1 && bytes[0] === 0 && (bytes[1] ?? 0) < 0x80) bytes = bytes.subarray(1)
  return der(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes)
}

/** `unused` bits at the end of the last byte do not count. */
export const bits = (content: Buffer, unused = 0): Buffer => der(0x03, Buffer.from([unused]), content)

/** `[n]` around a whole value. */
export const explicit = (number: number, content: Buffer): Buffer => der(0xa0 | number, content)

/** `[n]` in place of the value's own tag. */
export const implicit = (number: number, content: Buffer): Buffer => der(0x80 | number, content)

export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes: number[] = [first * 40 + second]
  for (const arc of rest) {
    const groups = [arc & 0x7f]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) groups.unshift((left & 0x7f) | 0x80)
    bytes.push(...groups)
  }
  return der(0x06, Buffer.from(bytes))
}

/** UTCTime until 2049, GeneralizedTime from 2050 on, as RFC 5280 demands. */
export function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

export const pem = (label: string, content: Buffer): string =>
  `-----BEGIN ${label}-----\n${content.toString('base64').replace(/(.{64})(?!$)/g, '$1\n')}\n-----END ${label}-----\n`
