import { endianness } from 'node:os'
import type { AttributeToWrite } from '../netlink/buffer.js'

// The kernel's rules are lists of expressions. An expression reads a value into a register, compares a register, looks it up, or ends
// the rule with a verdict. These are the ones that our rules need, with the numbers of the kernel's header nf_tables.h.

export interface Expression {
  readonly name: string
  readonly attributes: readonly AttributeToWrite[]
}

/** An expression as the kernel reads it. */
export const expressionAttributes = ({ name, attributes }: Expression): AttributeToWrite[] => [
  [1, `${name}\0`],
  [2, attributes],
]

const expression = (name: string, ...attributes: AttributeToWrite[]): Expression => ({ name, attributes })

/** The attributes 1, 2, 3 … */
const numbered = (...values: number[]): AttributeToWrite[] => values.map((value, index) => [index + 1, value])

const zeroTerminated = (text: string): string => `${text}\0`

const DATA_VALUE = 1
const DATA_VERDICT = 2

const data = (bytes: string): AttributeToWrite[] => [[DATA_VALUE, bytes]]

/** A number as packets and connections have it in a register: in the byte order of the machine. */
export function hostNumber(value: number): string {
  const bytes = Buffer.alloc(4)
  if (endianness() === 'LE') bytes.writeUInt32LE(value >>> 0)
  else bytes.writeUInt32BE(value >>> 0)
  return bytes.toString('latin1')
}

/**
 * Registers are counted in steps of four bytes, from 0. The kernel numbers them from 8. Where a register of 16 bytes begins, it returns
 * the number of that one, from 1.
 */
const register = (index: number): number => (index % 4 === 0 ? 1 + index / 4 : 8 + index)

const verdictRegister = 0

/** The headers that `payload` reads from. */
export const header = { network: 1, transport: 2 } as const

export const payload = (to: number, from: number, offset: number, length: number): Expression =>
  expression('payload', ...numbered(register(to), from, offset, length))

export const metaKey = { mark: 3, iifname: 6, l4proto: 16 } as const

export const meta = (to: number, key: number): Expression => expression('meta', ...numbered(register(to), key))

export const setMeta = (key: number, from: number): Expression => expression('meta', [2, key], [3, register(from)])

export const ctKey = {
  state: 0,
  status: 2,
  protoDst: 12,
  source: { ip: 19, ip6: 21 },
  destination: { ip: 20, ip6: 22 },
} as const

export const ct = (to: number, key: number): Expression => expression('ct', ...numbered(register(to), key))

/** As the client sent it, before any translation. */
export const ctOriginal = (to: number, key: number): Expression =>
  expression('ct', ...numbered(register(to), key), [3, '\0'])

export const random = (to: number, below: number): Expression =>
  expression('numgen', ...numbered(register(to), below, 1, 0))

export const fibFlag = { saddr: 1, daddr: 2 } as const

/** The type of an address, such as local. */
export const fibType = (to: number, flag: number): Expression => expression('fib', ...numbered(register(to), 3, flag))

export const equal = (index: number, bytes: string): Expression =>
  expression('cmp', [1, register(index)], [2, 0], [3, data(bytes)])

export const notEqual = (index: number, bytes: string): Expression =>
  expression('cmp', [1, register(index)], [2, 1], [3, data(bytes)])

/** `register = (register & mask) ^ xor` */
export const bitwise = (index: number, mask: string, xor: string): Expression =>
  expression(
    'bitwise',
    ...numbered(register(index), register(index), mask.length),
    [4, data(mask)],
    [5, data(xor)],
    [6, 0],
  )

export const lookup = (set: string, key: number): Expression =>
  expression('lookup', [1, zeroTerminated(set)], [2, register(key)])

export const lookupNot = (set: string, key: number): Expression =>
  expression('lookup', [1, zeroTerminated(set)], [2, register(key)], [5, 1])

export const lookupValue = (map: string, key: number, to: number): Expression =>
  expression('lookup', [1, zeroTerminated(map)], [2, register(key)], [3, register(to)])

export const lookupVerdict = (map: string, key: number): Expression =>
  expression('lookup', [1, zeroTerminated(map)], [2, register(key)], [3, verdictRegister])

/** Adds an element, or lets it live on. */
export const update = (map: string, key: number, value: number, timeoutMs: bigint): Expression =>
  expression('dynset', [1, zeroTerminated(map)], [3, 1], [4, register(key)], [5, register(value)], [6, timeoutMs])

const verdictCode = { drop: 0, accept: 1, jump: -3, goto: -4, return: -5 } as const

export const verdict = (kind: keyof typeof verdictCode, chain?: string): Expression =>
  expression(
    'immediate',
    [1, verdictRegister],
    [
      2,
      [[DATA_VERDICT, [[1, verdictCode[kind]], ...(chain === undefined ? [] : [[2, zeroTerminated(chain)] as const])]]],
    ],
  )

/** Loads a constant. */
export const immediate = (to: number, bytes: string): Expression =>
  expression('immediate', [1, register(to)], [2, data(bytes)])

/** To this machine. @param port where the port is */
export const redirect = (port: number): Expression => expression('redir', [1, register(port)])

/** @param port where the port is; undefined: the port stays */
export const dnat = (family: number, address: number, port: number | undefined): Expression =>
  expression(
    'nat',
    ...numbered(1, family, register(address)),
    ...(port === undefined ? [] : [[5, register(port)] as const]),
  )

const NF_NAT_RANGE_PROTO_RANDOM_FULLY = 1 << 4

export const masqueradeFullyRandom = (): Expression => expression('masq', [1, NF_NAT_RANGE_PROTO_RANDOM_FULLY])

export const rejectWithReset = (): Expression => expression('reject', [1, 1])

export const rejectWithIcmp = (code: number): Expression => expression('reject', [1, 0], [2, String.fromCharCode(code)])

/** Of a set: each of its elements gets one. */
export const counter = (): Expression => expression('counter')
