import type { Family } from '../address.js'
import { type Protocol, protocolNumbers, protocols } from '../element.js'
import { names, tableName } from '../names.js'
import { NLM_F_CREATE, nftMessage } from './constants.js'
import type { MessageBuffer } from './message-buffer.js'
import { nftType, protocolFamily } from './set-elements.js'

// The chains that remember clients, expression by expression. They are the only rules made at run time, and they are made here
// and not by the nft command so that they come in the same transaction as the elements that go to them, and because nft
// before 1.0.7 fails on a map update with a key as long as that of IPv6. The text form is `rememberRule` in skeleton.ts.

const NLM_F_APPEND = 0x800
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

/** The first of the sixteen 4-byte registers. */
const firstRegister = 8

const ofFamily = {
  ip: { addressRegisters: 1, ctSource: 19, ctDestination: 20, daddrOffset: 16 },
  ip6: { addressRegisters: 4, ctSource: 21, ctDestination: 22, daddrOffset: 24 },
} as const

export function writeRememberChain(buffer: MessageBuffer, family: Family, chain: string): void {
  buffer.begin(nftType(nftMessage.NEWCHAIN), NLM_F_CREATE, protocolFamily(family))
  buffer.text(CHAIN_TABLE, tableName)
  buffer.text(CHAIN_NAME, chain)
  buffer.end()
  const seconds = Number(chain.slice(chain.lastIndexOf('-') + 1))
  for (const protocol of protocols) {
    buffer.begin(nftType(nftMessage.NEWRULE), NLM_F_CREATE | NLM_F_APPEND, protocolFamily(family))
    buffer.text(RULE_TABLE, tableName)
    buffer.text(RULE_CHAIN, chain)
    buffer.nested(RULE_EXPRESSIONS, () => writeRule(buffer, family, protocol, seconds))
    buffer.end()
  }
}

function writeRule(buffer: MessageBuffer, family: Family, protocol: Protocol, seconds: number): void {
  const { addressRegisters, ctSource, ctDestination, daddrOffset } = ofFamily[family]
  const expression = (name: string, write: () => void) =>
    buffer.nested(LIST_ELEMENT, () => {
      buffer.text(EXPRESSION_NAME, name)
      buffer.nested(EXPRESSION_DATA, write)
    })
  const numbers = (...values: number[]) => {
    for (const [index, value] of values.entries()) buffer.u32(index + 1, value)
  }
  const meta = (register: number) => expression('meta', () => numbers(register, META_L4PROTO))
  const ct = (register: number, key: number) =>
    expression('ct', () => {
      numbers(register, key)
      buffer.u8(3, 0) // the original direction
    })
  const payload = (register: number, header: number, offset: number, length: number) =>
    expression('payload', () => numbers(register, header, offset, length))

  const key = firstRegister
  const data = key + 2 * addressRegisters + 2
  meta(key)
  expression('cmp', () => {
    numbers(key, 0)
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
    buffer.u32(4, key)
    buffer.u32(5, data)
    buffer.u64(6, BigInt(seconds) * 1000n)
  })
}
