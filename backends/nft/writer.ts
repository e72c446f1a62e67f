import type { Family } from './address.js'
import type { ElementMap, Elements } from './element.js'
import type { SetPath } from './names.js'
import type { Transaction } from './transaction.js'

/** A chain to be made before elements can go to it: `ip remember-60`. */
export type ChainPath = `${Family} ${string}`

/** What a table looks like without its elements. */
export interface TableOutline {
  readonly sets: ReadonlySet<string>
  /** The chains that remember clients, and whether their rules are what we write into such chains. */
  readonly rememberChains: ReadonlyMap<string, boolean>
  /**
   * Another one for other flags of the table, other sets, chains, hooks, policies or rules; not for other elements or counts. The
   * chains that remember clients and the seal come after the digest, and are no part of it.
   */
  readonly digest: string
}

/** Brings elements into the kernel, and back. */
export interface Writer {
  readonly name: 'netlink' | 'nft'
  /** All of it or nothing; rejects when it was nothing. */
  commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void>
  /** Chains that no element goes to any more. All of them or none; rejects when it was none. */
  removeChains(chains: readonly ChainPath[]): Promise<void>
  /** What is in a set of ours. The set must exist. One that packets write may have changed while it was read. */
  read(path: SetPath): Promise<ElementMap>
  /** What is in all our sets of a family but those that packets write. The table must be ours. */
  readAll(family: Family): Promise<Elements>
  /** Undefined when there is no table of ours. Rejects when it changed each time it was looked at. */
  outline(family: Family): Promise<TableOutline | undefined>
  close(): void
}
