// The part of the instruction set that kpng uses: linux/bpf.h and Documentation/bpf/standardization/instruction-set.rst.

/** The lower three bits of an instruction's code. */
export const classes = { load: 1, storeConstant: 2, store: 3, jump: 5, alu64: 7 } as const

const sizes = { u32: 0x00, u16: 0x08, u8: 0x10, u64: 0x18 } as const
const operations = { '+': 0x00, '*': 0x20, '|': 0x40, '&': 0x50, '>>': 0x70, '%': 0x90, '-': 0x10, '=': 0xb0 } as const
const comparisons = { '==': 0x10, '>': 0x20, '&': 0x40, '!=': 0x50 } as const

export type Size = keyof typeof sizes
export type Operation = keyof typeof operations
export type Comparison = keyof typeof comparisons

export const opcodes = {
  sizes,
  operations,
  comparisons,
  /** Loads and stores of plain memory. */
  memory: 0x60,
  /** Stores that add atomically; the constant 0 means "add". */
  atomic: 0xc0,
  /** The second operand is a register, not the constant. */
  fromRegister: 0x08,
  /** A 64-bit constant, or a map. */
  wide: 0x18,
  /** In the place of the source register of `wide`: the constant is a map's descriptor. */
  isMap: 1,
  call: 0x85,
  exit: 0x95,
} as const

/** Functions of the kernel that programs may call. */
export const helpers = {
  mapLookup: 1,
  mapUpdate: 2,
  monotonicTime: 5,
  random: 7,
  socketStorage: 107,
  networkNamespaceCookie: 122,
  coarseMonotonicTime: 160,
} as const

/** The name that a table has for a number. */
export const nameIn = <Name extends string>(table: Readonly<Record<Name, number>>, number: number): Name | undefined =>
  (Object.keys(table) as Name[]).find((name) => table[name] === number)
