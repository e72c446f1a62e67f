import { toBinary } from '@bufbuild/protobuf'
import { type Endpoint, EndpointSchema } from './gen/localv1/api_pb.js'

/** Large enough for every plain endpoint. */
const scratch = new Uint8Array(1024)
/** Two addresses of this length, with their tags, are less than 128 bytes: the length of what they are nested in is one byte. */
const maxText = 60
const maxAddresses = 2
const maxPorts = 8

/**
 * The bytes of an endpoint's message, the same as those of `toBinary`. Written by hand, because this is done for every endpoint when a core starts, and
 * when a node writes its state cache: `toBinary`, which looks up each field, takes ten times as long. What is not plain is left to `toBinary`.
 */
export function endpointBytes(message: Endpoint): Uint8Array {
  if (!isPlain(message)) return toBinary(EndpointSchema, message)
  const { hostname, ips, local, portOverrides, scopes, conditions } = message
  let at = hostname === '' ? 0 : text(0, 1, hostname)
  if (ips) {
    const start = at + 2
    at = start
    for (const address of ips.v4) at = text(at, 1, address)
    for (const address of ips.v6) at = text(at, 2, address)
    nest(start, at, 2)
  }
  at = flag(at, 3, local)
  for (const { name, port, protocol } of portOverrides) {
    const start = at + 2
    at = name === '' ? start : text(start, 1, name)
    if (port !== 0) at = number(at, 2, port)
    if (protocol !== undefined) at = number(at, 4, protocol)
    nest(start, at, 4)
  }
  if (scopes) {
    const { internal, external, cluster } = scopes
    at = flags(at, 5, internal, external, cluster)
  }
  if (conditions) {
    const { ready, serving, terminating } = conditions
    at = flags(at, 6, ready, serving, terminating)
  }
  // A Buffer of Node's pool costs less memory than an array of its own.
  return typeof Buffer === 'undefined' ? scratch.slice(0, at) : Buffer.from(scratch.subarray(0, at))
}

/** Whether all texts are short ASCII and all numbers small: then no length needs more than one byte, and everything fits. */
function isPlain({ hostname, ips, portOverrides }: Endpoint): boolean {
  if (!isShort(hostname) || portOverrides.length > maxPorts) return false
  if (ips && (ips.v4.length + ips.v6.length > maxAddresses || !ips.v4.every(isShort) || !ips.v6.every(isShort)))
    return false
  return portOverrides.every(
    ({ name, port, scopes, protocol = 0 }) => !scopes && isShort(name) && isSmall(port) && isSmall(protocol),
  )
}

function isShort(value: string): boolean {
  if (value.length > maxText) return false
  for (let index = 0; index < value.length; index++) if (value.charCodeAt(index) > 127) return false
  return true
}

const isSmall = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 2 ** 16

/** Each of these writes a field, and returns where the next one begins. */
function text(at: number, field: number, value: string): number {
  scratch[at] = (field << 3) | 2
  scratch[at + 1] = value.length
  for (let index = 0; index < value.length; index++) scratch[at + 2 + index] = value.charCodeAt(index)
  return at + 2 + value.length
}

function number(at: number, field: number, value: number): number {
  scratch[at] = field << 3
  let end = at + 1
  for (let rest = value; ; rest >>= 7) {
    scratch[end++] = rest > 127 ? (rest & 127) | 128 : rest
    if (rest <= 127) return end
  }
}

function flag(at: number, field: number, value: boolean): number {
  return value ? number(at, field, 1) : at
}

/** A message of three flags. */
function flags(at: number, field: number, first: boolean, second: boolean, third: boolean): number {
  const start = at + 2
  const end = flag(flag(flag(start, 1, first), 2, second), 3, third)
  nest(start, end, field)
  return end
}

/** The tag and the length of a nested message, before what is written of it. */
function nest(start: number, end: number, field: number): void {
  scratch[start - 2] = (field << 3) | 2
  scratch[start - 1] = end - start
}
