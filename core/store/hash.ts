import xxhash from 'xxhash-wasm'

const { h64Raw, h64ToString } = await xxhash()

/** 64 bits, as the contract's Hash fields carry them. */
export const hash64 = (bytes: Uint8Array): bigint => h64Raw(bytes)

/** 64 bits as 16 hex digits, for keys of things that have no name. */
export const hashKey = (text: string): string => h64ToString(text)
