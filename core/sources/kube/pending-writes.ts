import { messageOf } from '@kpng/api'
import type { Transaction } from '../../store/index.js'
import type { Skips } from '../skips.js'
import type { WatchedKind } from './kinds.js'
import { type KubeObject, namespaceOf, type ObjectEvent } from './reflector/index.js'

/** An object as the store should have it. Without a value the store should not have it. */
interface Write<T> {
  readonly namespace: string
  readonly name: string
  readonly value: T | undefined
}

/**
 * What is to be written to the store next, for one kind. Each object is reduced to what kpng uses when it arrives. Writes wait as
 * data, not as functions: those would keep the whole parsed objects alive. Only one write waits per object, because a list may
 * break off again and again while its objects change.
 */
export class PendingWrites<T> {
  readonly #kind: WatchedKind<T>
  readonly #skips: Skips
  readonly #writes = new Map<string, Write<T>>()
  /** When the first of the waiting writes arrived (Unix time). */
  #receivedAtMs: number | undefined

  constructor(kind: WatchedKind<T>, skips: Skips) {
    this.#kind = kind
    this.#skips = skips
  }

  get size(): number {
    return this.#writes.size
  }

  get receivedAtMs(): number | undefined {
    return this.#receivedAtMs
  }

  add(event: ObjectEvent): void {
    const { kind } = this.#kind
    if (event.type === 'nameless') {
      this.#skips.report(`${kind} without a name`, 'metadata.name is missing or empty. It is left out.')
      return
    }
    const { namespace, name } =
      event.type === 'delete' ? event : { namespace: namespaceOf(event.object), name: event.object.metadata.name }
    const described = namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
    if (event.type === 'delete') this.#skips.forget(described)
    if (this.#kind.isNamespaced !== (namespace !== '')) {
      // It must not reach the store, where it would take the place of the object that really has this name.
      const problem = this.#kind.isNamespaced ? 'is missing' : `is "${namespace}", and a ${kind} has none`
      if (event.type === 'set') this.#skips.report(described, `metadata.namespace ${problem}. It is left out.`)
      return
    }
    this.#receivedAtMs ??= performance.timeOrigin + performance.now()
    const key = `${namespace}/${name}`
    const value = event.type === 'set' ? this.#parse(event.object, described, this.#writes.get(key)?.value) : undefined
    this.#writes.set(key, { namespace, name, value })
  }

  /** Writes everything that waits. */
  writeTo(transaction: Transaction): void {
    for (const { namespace, name, value } of this.#writes.values()) {
      if (value === undefined) this.#kind.delete(transaction, namespace, name)
      else this.#kind.set(transaction, value)
    }
    this.#writes.clear()
    this.#receivedAtMs = undefined
  }

  #parse(object: KubeObject, described: string, waiting: T | undefined): T | undefined {
    return this.#skips.reading(described, (report) => {
      try {
        return this.#kind.parse(object, report, waiting)
      } catch (error) {
        // Parsers do not throw. If one does nevertheless, that must cost one object and not the whole source.
        report(`It cannot be understood: ${messageOf(error)}. It is left out.`)
        return undefined
      }
    })
  }
}
