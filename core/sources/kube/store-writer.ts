import { messageOf } from '@kpng/api'
import type { Report } from '../../kubernetes/index.js'
import type { Kind, Store, Transaction } from '../../store/index.js'
import type { Skips } from '../skips.js'
import type { KubeObject, ObjectHandler } from './reflector/index.js'

/** How the objects of one kind become entries of the store. */
export interface KindMapping<T> {
  /** As people call it, for instance `EndpointSlice`. */
  readonly kind: string
  /** The store's name for it, where the store waits for it. */
  readonly storeKind?: Kind
  /** What kpng uses of an object; undefined: nothing. */
  read(object: unknown, report: Report): T | undefined
  /**
   * The value with what the store has already in place of equal parts. While a list is under way much may wait: it then takes little
   * room, and little time to write.
   */
  share?(store: Store, value: T): T
  /** Two values of one object, one after the other, as one. Default: the later. */
  merge?(earlier: T, later: T): T
  set(transaction: Transaction, value: T): void
  delete(transaction: Transaction, namespace: string, name: string): void
}

export interface StoreWriterOptions<T> {
  readonly store: Store
  readonly skips: Skips
  readonly mapping: KindMapping<T>
  /** Called when an update made a revision. */
  readonly onRevision: () => void
}

/** An object as it belongs into the store; without a value it does not. */
interface Write<T> {
  readonly namespace: string
  readonly name: string
  readonly value: T | undefined
}

/**
 * Writes the objects of one kind into the store; a batch is one update. An object is reduced to what is used of it when it
 * arrives. Writes wait as data and not as functions: those would keep the whole parsed objects of a batch alive. Of each object one
 * waits: a batch may be a list that breaks off again and again while its objects change.
 */
export class StoreWriter<T> implements ObjectHandler {
  readonly #options: StoreWriterOptions<T>
  #writes = new Map<string, Write<T>>()
  /** When the first of the waiting writes arrived. */
  #receivedAtMs: number | undefined
  #isListed = false

  constructor(options: StoreWriterOptions<T>) {
    this.#options = options
  }

  set(object: KubeObject): void {
    const { store, mapping, skips } = this.#options
    const { name } = object.metadata
    const namespace = typeof object.metadata.namespace === 'string' ? object.metadata.namespace : ''
    const value = skips.reading(this.#described(namespace, name), (report) => read(mapping, object, report))
    this.#wait({ namespace, name, value: value && mapping.share ? mapping.share(store, value) : value })
  }

  delete(namespace: string, name: string): void {
    this.#options.skips.forget(this.#described(namespace, name))
    this.#wait({ namespace, name, value: undefined })
  }

  nameless(): void {
    const { mapping, skips } = this.#options
    skips.report(`${mapping.kind} without a name`, 'metadata.name is missing or empty. It is left out.')
  }

  #wait({ namespace, name, value }: Write<T>): void {
    const { mapping } = this.#options
    this.#receivedAtMs ??= performance.timeOrigin + performance.now()
    const key = `${namespace}/${name}`
    const earlier = this.#writes.get(key)?.value
    const merged = earlier && value && mapping.merge ? mapping.merge(earlier, value) : value
    this.#writes.set(key, { namespace, name, value: merged })
  }

  flush(listed: boolean): void {
    const { store, mapping, onRevision } = this.#options
    const writes = this.#writes
    const firstList = listed && !this.#isListed
    if (writes.size === 0 && !firstList) return
    const receivedAtMs = this.#receivedAtMs
    this.#writes = new Map()
    this.#receivedAtMs = undefined
    this.#isListed ||= listed
    const before = store.revision
    store.update((transaction) => {
      for (const { namespace, name, value } of writes.values()) {
        if (value === undefined) mapping.delete(transaction, namespace, name)
        else mapping.set(transaction, value)
      }
      if (firstList && mapping.storeKind) transaction.setSynced(mapping.storeKind)
    }, receivedAtMs)
    if (store.revision !== before) onRevision()
  }

  #described(namespace: string, name: string): string {
    const { kind } = this.#options.mapping
    return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
  }
}

/** The mappings are written not to throw; should one do, that is one object lost and not the whole source. */
function read<T>(mapping: KindMapping<T>, object: unknown, report: Report): T | undefined {
  try {
    return mapping.read(object, report)
  } catch (error) {
    report(`It cannot be understood: ${messageOf(error)}. It is left out.`)
    return undefined
  }
}
