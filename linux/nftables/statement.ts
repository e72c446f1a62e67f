import { addressBytes } from './element.js'
import * as kernel from './expression.js'
import { addressBytesIn, familyNumber, type Protocol, protocolNumbers, type TableFamily } from './family.js'
import { addressOffset, type Field, type Key, keyText, l4proto, loadKey, registersOf } from './field.js'

// The statements that our rules consist of. Each is written twice, side by side: as nft reads it, and as the kernel's expressions. A
// test loads both forms into the kernel and compares what it holds.

/** A part of a rule, or a whole rule. */
export interface Statement {
  readonly text: string
  readonly expressions: readonly kernel.Expression[]
}

const statement = (text: string, ...expressions: kernel.Expression[]): Statement => ({ text, expressions })

/** A rule of these statements, one after the other. */
export const rule = (...statements: readonly Statement[]): Statement => ({
  text: statements.map(({ text }) => text).join(' '),
  expressions: statements.flatMap(({ expressions }) => expressions),
})

export const isProtocol = (protocol: Protocol): Statement =>
  statement(
    `meta l4proto ${protocol}`,
    ...l4proto.load(0),
    kernel.equal(0, String.fromCharCode(protocolNumbers[protocol])),
  )

export const isIn = (key: Key, set: string): Statement =>
  statement(`${keyText(key)} @${set}`, ...loadKey(key), kernel.lookup(set, 0))

export const isNotIn = (key: Key, set: string): Statement =>
  statement(`${keyText(key)} != @${set}`, ...loadKey(key), kernel.lookupNot(set, 0))

const RTN_LOCAL = 2

/** The source or destination is an address of this machine. */
export const isLocal = (which: 'saddr' | 'daddr'): Statement =>
  statement(
    `fib ${which} type local`,
    kernel.fibType(0, kernel.fibFlag[which]),
    kernel.equal(0, kernel.hostNumber(RTN_LOCAL)),
  )

/** The destination is not a loopback address. */
export function isNoLoopback(family: TableFamily): Statement {
  const [text, bytes] = family === 'ip' ? ['127.0.0.0/8', '\x7f'] : ['::1', `${'\0'.repeat(15)}\x01`]
  return statement(
    `${family} daddr != ${text}`,
    kernel.payload(0, kernel.header.network, addressOffset[family].daddr, bytes.length),
    kernel.notEqual(0, bytes),
  )
}

const interfaceNameBytes = 16

const interfaceText = (name: string): string => `"${name}"`

/** @param name the end `*` stands for any end */
export const isInterface = (name: string): Statement =>
  statement(
    `iifname ${interfaceText(name)}`,
    kernel.meta(0, kernel.metaKey.iifname),
    kernel.equal(0, interfaceBytes(name)),
  )

export const isNoInterface = (name: string): Statement =>
  statement(
    `iifname != ${interfaceText(name)}`,
    kernel.meta(0, kernel.metaKey.iifname),
    kernel.notEqual(0, interfaceBytes(name)),
  )

const interfaceBytes = (name: string): string => {
  const bytes = Buffer.from(name.replace(/\*$/, '')).toString('latin1')
  return name.endsWith('*') ? bytes : bytes.padEnd(interfaceNameBytes, '\0')
}

const hasBit = (bit: number): kernel.Expression[] => [
  kernel.bitwise(0, kernel.hostNumber(bit), kernel.hostNumber(0)),
  kernel.notEqual(0, kernel.hostNumber(0)),
]

const IPS_DST_NAT = 1 << 5

/** The destination of the connection was translated. */
export const isTranslated: Statement = statement(
  'ct status dnat',
  kernel.ct(0, kernel.ctKey.status),
  ...hasBit(IPS_DST_NAT),
)

const stateInvalid = 1

export const isInvalid: Statement = statement(
  'ct state invalid',
  kernel.ct(0, kernel.ctKey.state),
  ...hasBit(stateInvalid),
)

const stateNew = 1 << 3

/** The first packet of a connection. */
export const isNew: Statement = statement('ct state new', kernel.ct(0, kernel.ctKey.state), ...hasBit(stateNew))

/** Any other packet. */
export const isNotNew: Statement = statement(
  'ct state != new',
  kernel.ct(0, kernel.ctKey.state),
  kernel.notEqual(0, kernel.hostNumber(stateNew)),
)

const hex = (mark: number): string => `0x${mark.toString(16)}`

const changeMark = (mask: number, xor: number): kernel.Expression[] => [
  kernel.meta(0, kernel.metaKey.mark),
  kernel.bitwise(0, kernel.hostNumber(mask), kernel.hostNumber(xor)),
  kernel.setMeta(kernel.metaKey.mark, 0),
]

export const setMark = (mark: number): Statement =>
  statement(`meta mark set meta mark | ${hex(mark)}`, ...changeMark(~mark, mark))

/** Of a packet that has it. */
export const removeMark = (mark: number): Statement =>
  statement(`meta mark set meta mark ^ ${hex(mark)}`, ...changeMark(-1, mark))

export const hasMark = (mark: number): Statement =>
  statement(
    `meta mark & ${hex(mark)} == ${hex(mark)}`,
    kernel.meta(0, kernel.metaKey.mark),
    kernel.bitwise(0, kernel.hostNumber(mark), kernel.hostNumber(0)),
    kernel.equal(0, kernel.hostNumber(mark)),
  )

export const goto = (chain: string): Statement => statement(`goto ${chain}`, kernel.verdict('goto', chain))
export const jump = (chain: string): Statement => statement(`jump ${chain}`, kernel.verdict('jump', chain))
export const drop: Statement = statement('drop', kernel.verdict('drop'))
export const accept: Statement = statement('accept', kernel.verdict('accept'))
export const returns: Statement = statement('return', kernel.verdict('return'))

/** Goes to the chain that a map has for the key. */
export const vmap = (key: Key, map: string): Statement =>
  statement(`${keyText(key)} vmap @${map}`, ...loadKey(key), kernel.lookupVerdict(map, 0))

/** To the endpoint that a map has for the key. If it has none, the next rule applies. */
export const dnatToValue = (
  family: TableFamily,
  key: Key,
  map: string,
  value: 'endpoint' | 'address' = 'endpoint',
): Statement =>
  statement(
    `dnat ${family} to ${keyText(key)} map @${map}`,
    ...loadKey(key),
    kernel.lookupValue(map, 0, 0),
    kernel.dnat(familyNumber[family], 0, value === 'endpoint' ? addressBytesIn[family] / 4 : undefined),
  )

/** To a port of this machine that a map has for the key. */
export const redirectToValue = (key: Key, map: string): Statement =>
  statement(
    `redirect to : ${keyText(key)} map @${map}`,
    ...loadKey(key),
    kernel.lookupValue(map, 0, 0),
    kernel.redirect(0),
  )

/** The first register behind the one of 16 bytes that an address is in. */
const afterAddress = 4

/**
 * To an address, and the port that a map has for the key.
 * @param to the address, or a field of the packet that has it
 */
export function dnatToPort(family: TableFamily, to: string | Field, key: Key, map: string): Statement {
  const load = typeof to === 'string' ? [kernel.immediate(0, addressBytes(to))] : to.load(0)
  const text = typeof to !== 'string' ? to.text : family === 'ip6' ? `[${to}]` : to
  return statement(
    `dnat to ${text} : ${keyText(key)} map @${map}`,
    ...load,
    ...loadKey(key, afterAddress),
    kernel.lookupValue(map, afterAddress, afterAddress),
    kernel.dnat(familyNumber[family], 0, afterAddress),
  )
}

export const masquerade: Statement = statement('masquerade fully-random', kernel.masqueradeFullyRandom())

export const reset: Statement = statement('reject with tcp reset', kernel.rejectWithReset())

/** The ICMP code "port unreachable". */
const portUnreachable: Readonly<Record<TableFamily, number>> = { ip: 3, ip6: 4 }

export const reject = (family: TableFamily): Statement =>
  statement('reject', kernel.rejectWithIcmp(portUnreachable[family]))

/** Writes an element that expires. */
export const updateMap = (map: string, key: Key, value: Key, seconds: number): Statement =>
  statement(
    `update @${map} { ${keyText(key)} timeout ${seconds}s : ${keyText(value)} }`,
    ...loadKey(key),
    ...loadKey(value, registersOf(key)),
    kernel.update(map, 0, registersOf(key), BigInt(seconds) * 1000n),
  )
