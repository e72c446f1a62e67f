import { KpngError, matchesLabels } from '@kpng/api'
import type { Kinds } from '../kinds/index.js'
import { type Kind, resourceOf } from '../kinds/kind.js'
import { clone } from '../objects/json.js'
import { type KubeObject, keyOf } from '../objects/types.js'
import { parseLabelSelector } from '../selectors/labels.js'
import { StatusError } from '../status/status.js'
import { type DeleteOptions, deleteObject } from './delete.js'
import type { Registry } from './registry.js'

export interface ListOptions {
  /** Default: all namespaces. */
  namespace?: string
  /** As in `kubectl get -l`. Default: all. */
  labelSelector?: string
}

/** What `apply` takes: the server fills in the rest. */
export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; [field: string]: unknown }
  [field: string]: unknown
}

/**
 * The objects without HTTP, for tests and for a command that shows something. Kinds are named as in manifests (`Service`).
 * The same rules hold as for a request: checks, defaults, allocation; refusals are thrown as `StatusError`. What is
 * returned is shared and frozen.
 */
export class Objects {
  readonly #registry: Registry
  readonly #maxGracePeriodSeconds: number

  constructor(registry: Registry, maxGracePeriodSeconds: number) {
    this.#registry = registry
    this.#maxGracePeriodSeconds = maxGracePeriodSeconds
  }

  /** Creates the object, or replaces the one there is; a `status` in it is stored too. */
  apply<T extends KubeObject = KubeObject>(manifest: Manifest): Readonly<T> {
    const kind = this.#registry.kinds.byKind(manifest.apiVersion, manifest.kind)
    if (!kind) throw unknownKind(`${manifest.kind} in ${manifest.apiVersion}`, this.#registry.kinds)
    const object = clone(manifest) as KubeObject
    const { name } = object.metadata
    const namespace = kind.namespaced ? (object.metadata.namespace ?? 'default') : undefined
    const { status } = object
    const written = this.#registry.find(kind, namespace, name)
      ? this.#registry.update(kind, namespace, name, object)
      : this.#registry.create(kind, namespace, object)
    if (status === undefined || !kind.hasStatus) return written as T
    return this.#registry.update(kind, namespace, name, { ...clone(written), status }, { subresource: 'status' }) as T
  }

  /** Undefined when there is none. */
  get<T extends KubeObject = KubeObject>(kind: string, name: string, namespace = 'default'): Readonly<T> | undefined {
    const found = this.#kindCalled(kind)
    return this.#registry.find(found, found.namespaced ? namespace : undefined, name) as T | undefined
  }

  list<T extends KubeObject = KubeObject>(
    kind: string,
    { namespace, labelSelector = '' }: ListOptions = {},
  ): Readonly<T>[] {
    const requirements = parseLabelSelector(labelSelector)
    return this.#registry.store
      .list(resourceOf(this.#kindCalled(kind)))
      .map(({ object }) => object as T)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) => matchesLabels(requirements, metadata.labels))
  }

  /** False when there is none. */
  delete(kind: string, name: string, namespace = 'default', options: DeleteOptions = {}): boolean {
    const found = this.#kindCalled(kind)
    const home = found.namespaced ? namespace : undefined
    if (!this.#registry.find(found, home, name)) return false
    deleteObject(this.#registry, found, home, name, { maxGracePeriodSeconds: this.#maxGracePeriodSeconds, ...options })
    return true
  }

  /** Calls back after each change to an object of this kind. Returns the function that ends it. */
  onChange(kind: string, listener: () => void): () => void {
    return this.#registry.store.subscribe(resourceOf(this.#kindCalled(kind)), listener)
  }

  /** Waits until the object (undefined: gone) is as wanted. Rejects after `timeoutMs` (default 10000) with its last state. */
  waitFor<T extends KubeObject = KubeObject>(
    kind: string,
    name: string,
    wanted: (object: Readonly<T> | undefined) => boolean,
    { namespace = 'default', timeoutMs = 10_000 }: { namespace?: string; timeoutMs?: number } = {},
  ): Promise<Readonly<T> | undefined> {
    const found = this.#kindCalled(kind)
    const key = keyOf(found.namespaced ? namespace : undefined, name)
    return new Promise((resolve, reject) => {
      const look = () => {
        const object = this.get<T>(kind, name, namespace)
        if (!wanted(object)) return
        done()
        resolve(object)
      }
      const leave = this.#registry.store.subscribe(resourceOf(found), (change) => {
        if (change.key === key) look()
      })
      const timer = setTimeout(() => {
        done()
        const last = JSON.stringify(this.get(kind, name, namespace) ?? null)
        reject(
          new KpngError(
            'unavailable',
            `${kind} ${key} did not become as wanted within ${timeoutMs} ms; it is ${last}.`,
          ),
        )
      }, timeoutMs)
      const done = () => {
        leave()
        clearTimeout(timer)
      }
      look()
    })
  }

  #kindCalled(name: string): Kind {
    const kind = this.#registry.kinds.all.find((item) => item.kind === name && !item.storedAs)
    if (!kind) throw unknownKind(name, this.#registry.kinds)
    return kind
  }
}

function unknownKind(what: string, { all }: Kinds): StatusError {
  const known = all.filter(({ storedAs }) => !storedAs).map(({ kind }) => kind)
  return new StatusError(404, 'NotFound', `The playground has no kind ${what}; it has ${known.join(', ')}.`)
}
