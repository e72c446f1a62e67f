import type { Family } from './address.js'
import type { ElementMap, Elements } from './element.js'
import type { SetPath } from './names.js'
import type { Transaction } from './transaction.js'

/** A chain to be made before elements can go to it: `ip remember-60`. */
export type ChainPath = `${Family} ${string}`

/** What a table looks like without its elements. */
export interface TableOutline {
  readonly sets: ReadonlySet<string>
  /** Chain → number of its rules. */
  readonly chains: ReadonlyMap<string, number>
}

/** Brings elements into the kernel, and back. */
export interface Writer {
  readonly name: 'netlink' | 'nft'
  /** All of it or nothing; rejects when it was nothing. */
  commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void>
  /** What is in a set of ours. The set must exist. */
  read(path: SetPath): Promise<ElementMap>
  /** What is in all our sets of a family but those that packets write. The table must be ours. */
  readAll(family: Family): Promise<Elements>
  /** Undefined when there is no table of ours. */
  outline(family: Family): Promise<TableOutline | undefined>
  close(): void
}
