import type { Program } from './assembler.js'
import { classes, helpers, nameIn, opcodes } from './instruction-set.js'

/** The text of a program, read from its bytes: one instruction per line, labels in lines of their own. */
export function disassemble({ code, labels, maps }: Program): string {
  const lines: string[] = []
  const labelAt = (place: number) => labels.get(place)?.[0] ?? `instruction ${place}`
  for (let place = 0; place * 8 < code.length; place++) {
    for (const label of labels.get(place) ?? []) lines.push(`${label}:`)
    const read = instructionAt(code, place)
    lines.push(`  ${textOf(read, labelAt, maps)}`)
    if (read.code === opcodes.wide) place++
  }
  return `${lines.join('\n')}\n`
}

interface ReadInstruction {
  readonly place: number
  readonly code: number
  readonly to: string
  readonly from: string
  readonly fromNumber: number
  readonly offset: number
  readonly constant: number
  /** The second half of a 64-bit constant. */
  readonly upper: number
}

const registerName = (number: number): string => (number === 10 ? 'fp' : `r${number}`)

function instructionAt(bytes: Buffer, place: number): ReadInstruction {
  const at = place * 8
  const registers = bytes.readUInt8(at + 1)
  return {
    place,
    code: bytes.readUInt8(at),
    to: registerName(registers & 0xf),
    from: registerName(registers >> 4),
    fromNumber: registers >> 4,
    offset: bytes.readInt16LE(at + 2),
    constant: bytes.readInt32LE(at + 4),
    upper: bytes.readUInt8(at) === opcodes.wide ? bytes.readInt32LE(at + 12) : 0,
  }
}

function textOf(read: ReadInstruction, labelAt: (place: number) => string, maps: Program['maps']): string {
  const { code, to, from, offset, constant, place } = read
  const operand = code & opcodes.fromRegister ? from : constant
  const at = (base: string) =>
    `${nameIn(opcodes.sizes, code & 0x18)}(${base} ${offset < 0 ? '-' : '+'} ${Math.abs(offset)})`
  switch (code) {
    case opcodes.wide:
      return `${to} = ${read.fromNumber === opcodes.isMap ? `map ${maps.get(constant)}` : wideConstant(read)}`
    case opcodes.call:
      return `call ${nameIn(helpers, constant)}`
    case opcodes.exit:
      return 'exit'
    case classes.jump:
      return `goto ${labelAt(place + offset + 1)}`
  }
  switch (code & 7) {
    case classes.load:
      return `${to} = ${at(from)}`
    case classes.store:
      return (code & 0xe0) === opcodes.atomic ? `atomic ${at(to)} += ${from}` : `${at(to)} = ${from}`
    case classes.storeConstant:
      return `${at(to)} = ${constant}`
    case classes.alu64: {
      const operation = nameIn(opcodes.operations, code & 0xf0)
      return `${to} ${operation === '=' ? '' : operation}= ${operand}`
    }
    case classes.jump:
      return `if ${to} ${nameIn(opcodes.comparisons, code & 0xf0)} ${operand} goto ${labelAt(place + offset + 1)}`
    default:
      return `unknown instruction ${code}`
  }
}

const wideConstant = ({ constant, upper }: ReadInstruction): bigint =>
  BigInt.asUintN(64, (BigInt(upper) << 32n) | BigInt(constant >>> 0))
