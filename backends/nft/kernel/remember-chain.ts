import type { Protocol } from '@kpng/client'
import { MessageBuffer, NLA_F_NESTED, NLM_F_APPEND, NLM_F_CREATE } from '@kpng/linux'
import { type ChainPath, protocolNumbers, protocols } from '../elements/element.js'
import type { TableFamily } from '../rules/family.js'
import { names, rememberedSeconds, splitSetPath } from '../rules/names.js'
import { nftMessage } from './constants.js'
import { nftType, protocolFamily } from './set-elements.js'

// The chains that remember clients, expression by expression. These are the only rules that are made at run time. The nft command
// does not make them for two reasons: they must be in the same transaction as the elements that refer to them, and nft before 1.0.7
// fails on a map update with a key as long as that of IPv6. The text form is `rememberRule` in skeleton.ts.

const CHAIN_TABLE = 1
const CHAIN_NAME = 3
const RULE_TABLE = 1
const RULE_CHAIN = 2
const RULE_EXPRESSIONS = 4
const LIST_ELEMENT = 1
const EXPRESSION_NAME = 1
const EXPRESSION_DATA = 2
const DATA_VALUE = 1

const META_L4PROTO = 16
const CT_PROTO_DST = 12
const networkHeader = 1
const transportHeader = 2
const dportOffset = 2
const dynsetUpdate = 1

/** The number of the first four-byte register. Where a 16-byte register begins, the kernel returns the number of that one. */
const firstSmallRegister = 8

const registerNumber = (index: number): number => (index % 4 === 0 ? 1 + index / 4 : firstSmallRegister + index)

const ofFamily = {
  ip: { addressRegisters: 1, ctSource: 19, ctDestination: 20, daddrOffset: 16 },
  ip6: { addressRegisters: 4, ctSource: 21, ctDestination: 22, daddrOffset: 24 },
} as const

export function writeRememberChain(buffer: MessageBuffer, table: string, path: ChainPath): void {
  const { family, name: chain } = splitSetPath(path)
  buffer.beginNetfilter(nftType(nftMessage.NEWCHAIN), NLM_F_CREATE, protocolFamily(family))
  buffer.text(CHAIN_TABLE, table)
  buffer.text(CHAIN_NAME, chain)
  buffer.end()
  for (const expressions of rememberExpressions(family, rememberedSeconds(chain) ?? 0)) {
    buffer.beginNetfilter(nftType(nftMessage.NEWRULE), NLM_F_CREATE | NLM_F_APPEND, protocolFamily(family))
    buffer.text(RULE_TABLE, table)
    buffer.text(RULE_CHAIN, chain)
    buffer.raw(RULE_EXPRESSIONS | NLA_F_NESTED, expressions.toString('latin1'))
    buffer.end()
  }
}

/** Removes a chain together with its rules. */
export function writeChainRemoval(buffer: MessageBuffer, table: string, path: ChainPath): void {
  const { family, name: chain } = splitSetPath(path)
  buffer.beginNetfilter(nftType(nftMessage.DELCHAIN), 0, protocolFamily(family))
  buffer.text(CHAIN_TABLE, table)
  buffer.text(CHAIN_NAME, chain)
  buffer.end()
}

/** The expressions of each rule of a chain that remembers for this long. */
export function rememberExpressions(family: TableFamily, seconds: number): Buffer[] {
  return protocols.map((protocol) => {
    const buffer = new MessageBuffer(1)
    writeRule(buffer, family, protocol, seconds)
    return buffer.bytes
  })
}

function writeRule(buffer: MessageBuffer, family: TableFamily, protocol: Protocol, seconds: number): void {
  const { addressRegisters, ctSource, ctDestination, daddrOffset } = ofFamily[family]
  const expression = (name: string, write: () => void) =>
    buffer.nested(LIST_ELEMENT, () => {
      buffer.text(EXPRESSION_NAME, name)
      buffer.nested(EXPRESSION_DATA, write)
    })
  const numbers = (...values: number[]) => {
    for (const [index, value] of values.entries()) buffer.u32(index + 1, value)
  }
  const meta = (register: number) => expression('meta', () => numbers(registerNumber(register), META_L4PROTO))
  const ct = (register: number, key: number) =>
    expression('ct', () => {
      numbers(registerNumber(register), key)
      buffer.u8(3, 0) // the original direction
    })
  const payload = (register: number, header: number, offset: number, length: number) =>
    expression('payload', () => numbers(registerNumber(register), header, offset, length))

  const key = 0
  const data = key + 2 * addressRegisters + 2
  meta(key)
  expression('cmp', () => {
    numbers(registerNumber(key), 0)
    buffer.nested(3, () => buffer.raw(DATA_VALUE, String.fromCharCode(protocolNumbers[protocol])))
  })
  ct(key, ctSource)
  ct(key + addressRegisters, ctDestination)
  meta(key + 2 * addressRegisters)
  ct(key + 2 * addressRegisters + 1, CT_PROTO_DST)
  payload(data, networkHeader, daddrOffset, addressRegisters * 4)
  payload(data + addressRegisters, transportHeader, dportOffset, 2)
  expression('dynset', () => {
    buffer.text(1, names.affinity)
    buffer.u32(3, dynsetUpdate)
    buffer.u32(4, registerNumber(key))
    buffer.u32(5, registerNumber(data))
    buffer.u64(6, BigInt(seconds) * 1000n)
  })
}
