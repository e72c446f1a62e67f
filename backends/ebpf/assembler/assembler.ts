import { KpngError } from '@kpng/api'
import { type Comparison, classes, helpers, type Operation, opcodes, type Size } from './instruction-set.js'

/** One of the machine's registers. */
export interface Register {
  readonly register: number
}

const register = (number: number): Register => ({ register: number })

/** r0: results of calls. r1-r5: arguments, lost by a call. r6-r9: kept. fp: the end of 512 bytes of stack. */
export const [r0, r1, r2, r3, r4, r6, r7, r8, r9, fp] = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10].map(register) as [
  ...[Register, Register, Register, Register, Register],
  ...[Register, Register, Register, Register, Register],
]

/** So many bytes at an address. */
export interface Memory {
  readonly size: Size
  readonly base: Register
  readonly offset: number
}

const memory =
  (size: Size) =>
  (base: Register, offset = 0): Memory => ({ size, base, offset })

export const u8 = memory('u8')
export const u16 = memory('u16')
export const u32 = memory('u32')
export const u64 = memory('u64')

/** A map as programs refer to it. */
export interface MapReference {
  readonly name: string
  readonly fd: number
}

/** A program as the kernel takes it, and what its text needs beside. */
export interface Program {
  /** 8 bytes per instruction; an instruction with a 64-bit constant or a map has 16. */
  readonly code: Buffer
  /** By the number of the instruction that they stand before. */
  readonly labels: ReadonlyMap<number, readonly string[]>
  /** By descriptor. */
  readonly maps: ReadonlyMap<number, string>
}

interface Instruction {
  readonly code: number
  readonly to: Register
  readonly from: Register
  readonly offset: number
  readonly constant: number
  /** Its second half, of instructions that have one. */
  readonly upper?: number
  readonly target?: string
}

const none = register(0)

/** Writes a program, one instruction per call, in the order of the calls. Offsets of jumps are worked out in `program`. */
export class Assembler {
  readonly #instructions: Instruction[] = []
  readonly #places: number[] = []
  readonly #labels = new Map<string, number>()
  readonly #maps = new Map<number, string>()
  #size = 0

  /** to = from */
  set(to: Register, from: Register | number): this {
    return this.compute(to, '=', from)
  }

  /** to += by, and so on for the other operations. All in 64 bits. */
  compute(to: Register, operation: Operation, by: Register | number): this {
    const code = classes.alu64 | opcodes.operations[operation]
    return this.#withOperand(code, to, by)
  }

  /** to = a constant of 64 bits */
  setWide(to: Register, value: bigint): this {
    const [lower, upper] = [value, value >> 32n].map((half) => Number(BigInt.asIntN(32, half))) as [number, number]
    return this.#add({ code: opcodes.wide, to, constant: lower, upper })
  }

  /** to = a reference to a map */
  setMap(to: Register, { name, fd }: MapReference): this {
    this.#maps.set(fd, name)
    return this.#add({ code: opcodes.wide, to, from: register(opcodes.isMap), constant: fd, upper: 0 })
  }

  /** to = the bytes at an address */
  load(to: Register, { size, base, offset }: Memory): this {
    return this.#add({ code: classes.load | opcodes.sizes[size] | opcodes.memory, to, from: base, offset })
  }

  /** the bytes at an address = a register or a constant */
  store({ size, base, offset }: Memory, value: Register | number): this {
    const mode = opcodes.sizes[size] | opcodes.memory
    if (typeof value === 'number')
      return this.#add({ code: classes.storeConstant | mode, to: base, offset, constant: value })
    return this.#add({ code: classes.store | mode, to: base, from: value, offset })
  }

  /** the 64 bits at an address += a register, without a moment in between */
  addAtomically({ base, offset }: Memory, value: Register): this {
    return this.#add({
      code: classes.store | opcodes.sizes.u64 | opcodes.atomic,
      to: base,
      from: value,
      offset,
    })
  }

  /** Copies bytes, 4 at a time, through r1. */
  copy(bytes: number, to: Memory, from: Memory): this {
    for (let at = 0; at < bytes; at += 4) {
      this.load(r1, u32(from.base, from.offset + at))
      this.store(u32(to.base, to.offset + at), r1)
    }
    return this
  }

  /** Goes on at a label if the condition is true. `&`: if they have a bit in common. Numbers are unsigned. */
  when(left: Register, comparison: Comparison, right: Register | number, target: string): this {
    return this.#withOperand(classes.jump | opcodes.comparisons[comparison], left, right, target)
  }

  jump(target: string): this {
    return this.#add({ code: classes.jump, target })
  }

  /** A place that jumps lead to. */
  label(name: string): this {
    if (this.#labels.has(name)) throw new KpngError('usage', `The label "${name}" is there twice. Rename one of them.`)
    this.#labels.set(name, this.#size)
    return this
  }

  call(helper: keyof typeof helpers): this {
    return this.#add({ code: opcodes.call, constant: helpers[helper] })
  }

  /** r0 = the address of the map's value for a key on the stack. Without such a key: goes on at a label. */
  lookup(map: MapReference, key: Memory, otherwise: string): this {
    this.setMap(r1, map).address(r2, key).call('mapLookup')
    return this.when(r0, '==', 0, otherwise)
  }

  /** to = the address itself */
  address(to: Register, { base, offset }: Memory): this {
    return this.set(to, base).compute(to, '+', offset)
  }

  exit(result: number): this {
    return this.set(r0, result).#add({ code: opcodes.exit })
  }

  program(): Program {
    const code = Buffer.alloc(this.#size * 8)
    for (const [index, { to, from, offset, constant, upper, target, ...one }] of this.#instructions.entries()) {
      const place = this.#places[index] as number
      const at = place * 8
      code.writeUInt8(one.code, at)
      code.writeUInt8(to.register | (from.register << 4), at + 1)
      code.writeInt16LE(target === undefined ? offset : this.#placeOf(target) - place - 1, at + 2)
      code.writeInt32LE(constant | 0, at + 4)
      if (upper !== undefined) code.writeInt32LE(upper, at + 12)
    }
    const labels = new Map<number, string[]>()
    for (const [name, place] of this.#labels) labels.set(place, [...(labels.get(place) ?? []), name])
    return { code, labels, maps: this.#maps }
  }

  #placeOf(target: string): number {
    const place = this.#labels.get(target)
    if (place === undefined) throw new KpngError('usage', `A jump leads to "${target}", which is not there. Add it.`)
    return place
  }

  #withOperand(code: number, to: Register, operand: Register | number, target?: string): this {
    const more = target === undefined ? {} : { target }
    if (typeof operand === 'number') return this.#add({ code, to, constant: operand, ...more })
    return this.#add({ code: code | opcodes.fromRegister, to, from: operand, ...more })
  }

  #add(given: Partial<Instruction> & Pick<Instruction, 'code'>): this {
    this.#instructions.push({ to: none, from: none, offset: 0, constant: 0, ...given })
    this.#places.push(this.#size)
    this.#size += given.upper === undefined ? 1 : 2
    return this
  }
}
