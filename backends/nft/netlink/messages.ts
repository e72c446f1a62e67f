import { NLA_TYPE_MASK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_ERROR } from './constants.js'
import { headerLength } from './message-buffer.js'

// Reading what the kernel answers.

export interface Message {
  readonly type: number
  readonly flags: number
  readonly sequence: number
  readonly port: number
  /** The address family in the netfilter header. */
  readonly family: number
  /** The whole message. */
  readonly bytes: Buffer
}

/** An attribute: where its value is. */
export interface Attribute {
  readonly type: number
  readonly value: Buffer
}

export function* messagesIn(bytes: Buffer): Generator<Message> {
  let at = 0
  while (at + 16 <= bytes.length) {
    const length = bytes.readUInt32LE(at)
    if (length < 16 || at + length > bytes.length) return
    const message = bytes.subarray(at, at + length)
    yield {
      type: message.readUInt16LE(4),
      flags: message.readUInt16LE(6),
      sequence: message.readUInt32LE(8),
      port: message.readUInt32LE(12),
      family: message[16] ?? 0,
      bytes: message,
    }
    at += (length + 3) & ~3
  }
}

export function* attributesIn(bytes: Buffer, start = 0): Generator<Attribute> {
  let at = start
  while (at + 4 <= bytes.length) {
    const length = bytes.readUInt16LE(at)
    if (length < 4 || at + length > bytes.length) return
    yield { type: bytes.readUInt16LE(at + 2) & NLA_TYPE_MASK, value: bytes.subarray(at + 4, at + length) }
    at += (length + 3) & ~3
  }
}

export const attributesOf = (message: Message): Generator<Attribute> => attributesIn(message.bytes, headerLength)

export function findAttribute(attributes: Iterable<Attribute>, type: number): Buffer | undefined {
  for (const attribute of attributes) if (attribute.type === type) return attribute.value
  return undefined
}

export const textOf = (value: Buffer): string => value.toString('latin1').replace(/\0+$/, '')

export interface Acknowledgement {
  readonly sequence: number
  /** 0 when all went well. */
  readonly errno: number
  /** What the kernel says beyond the number; mostly nothing. */
  readonly text: string
}

const NLMSGERR_ATTR_MSG = 1

/** The acknowledgement in a message, or undefined when it is none. */
export function acknowledgementIn({ type, flags, sequence, bytes }: Message): Acknowledgement | undefined {
  if (type !== NLMSG_ERROR || bytes.length < 36) return undefined
  const errno = -bytes.readInt32LE(16)
  if (!(flags & NLM_F_ACK_TLVS)) return { sequence, errno, text: '' }
  const echoed = flags & NLM_F_CAPPED ? 16 : bytes.readUInt32LE(20)
  const text = findAttribute(attributesIn(bytes, 20 + ((echoed + 3) & ~3)), NLMSGERR_ATTR_MSG)
  return { sequence, errno, text: text ? textOf(text) : '' }
}
