import { randomUUID } from 'node:crypto'
import type { Kinds } from '../kinds/index.js'
import { apiVersionOf, type Kind, resourceOf } from '../kinds/kind.js'
import { clone, equal } from '../objects/json.js'
import type { Namespace } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'
import { type KubeObject, keyOf } from '../objects/types.js'
import { trackUpdate, type Writer } from '../patch/managed-fields.js'
import { definitions } from '../schema/definitions.js'
import { alreadyExists, badRequest, conflict, forbidden, invalid, modified, notFound } from '../status/status.js'
import type { Store } from '../storage/store.js'
import { forbiddenValue } from '../validation/causes.js'
import { checkMeta } from '../validation/names.js'

export interface ObjectName {
  kind: Kind
  namespace: string | undefined
  name: string
}

export interface WriteOptions {
  /** Go through all checks, store nothing. */
  dryRun?: boolean
  subresource?: '' | 'status'
  /** Who writes, for managedFields; absent: fields are not tracked (controllers, tests). */
  fieldManager?: string
  /** Replaces the tracking of an update, for apply. */
  track?: (object: KubeObject) => void
}

const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
export const randomSuffix = (length = 5): string =>
  Array.from({ length }, () => suffixAlphabet[Math.floor(Math.random() * suffixAlphabet.length)]).join('')

/**
 * The rules between a request and the store: names, namespaces, defaults, checks, allocation, versions, life cycle. The
 * HTTP server, the controllers and tests all write through it.
 */
export class Registry {
  constructor(
    readonly store: Store,
    readonly kinds: Kinds,
  ) {}

  get(kind: Kind, namespace: string | undefined, name: string): KubeObject {
    const found = this.find(kind, namespace, name)
    if (!found) throw notFound(kind, name)
    return found
  }

  /** As stored; a kind that is stored as another one is converted by the caller. */
  find(kind: Kind, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.store.get(resourceOf(kind), keyOf(namespace, name))?.object
  }

  create(kind: Kind, namespace: string | undefined, input: KubeObject, options: WriteOptions = {}): KubeObject {
    const object = clone(kind.storedAs ? kind.storedAs.toStored(input) : input)
    const meta = object.metadata
    if (meta.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
    if (kind.namespaced) this.#placeIn(kind, object, namespace)
    if (!meta.name && meta.generateName) meta.name = meta.generateName.slice(0, 58) + randomSuffix()
    for (const name of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'managedFields'] as const) delete meta[name]
    meta.uid = randomUUID()
    meta.creationTimestamp = timestamp()
    if (kind.countsGenerations) meta.generation = 1
    kind.strategy.prepare?.(object)
    this.#check(kind, object)
    const key = keyOf(meta.namespace, meta.name)
    if (this.store.get(resourceOf(kind), key)) throw alreadyExists(kind, meta.name)
    this.#track(kind, object, undefined, options)
    this.#take(kind, object)
    return options.dryRun ? object : this.store.put(resourceOf(kind), key, object).object
  }

  update(
    kind: Kind,
    namespace: string | undefined,
    name: string,
    input: KubeObject,
    options: WriteOptions = {},
  ): KubeObject {
    const old = this.get(kind, namespace, name)
    const object = clone(kind.storedAs ? kind.storedAs.toStored(input) : input)
    this.#checkIdentity(kind, object, old)
    this.#keepWhatIsNotWritten(kind, object, old, options.subresource ?? '')
    kind.strategy.prepare?.(object, old)
    this.#check(kind, object, old)
    this.#track(kind, object, old, options)
    this.#take(kind, object, old)
    if (unchanged(object, old)) return old
    if (kind.countsGenerations && desiredChanged(object, old)) {
      object.metadata.generation = (old.metadata.generation ?? 0) + 1
    }
    if (options.dryRun) return object
    const key = keyOf(namespace, name)
    const stored = this.store.put(resourceOf(kind), key, object).object
    return this.#goesNow(stored) ? (this.store.remove(resourceOf(kind), key)?.object ?? stored) : stored
  }

  /** The last finalizer of an object that was to be deleted is gone. */
  #goesNow({ metadata, ...object }: KubeObject): boolean {
    if (!metadata.deletionTimestamp || metadata.finalizers?.length) return false
    const own = (object as unknown as Namespace).spec?.finalizers
    return (metadata.deletionGracePeriodSeconds ?? 0) === 0 && !own?.length
  }

  #placeIn(kind: Kind, object: KubeObject, namespace: string | undefined): void {
    const meta = object.metadata
    if (meta.namespace && namespace && meta.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    }
    meta.namespace = namespace ?? meta.namespace ?? 'default'
    const home = this.store.get('namespaces', meta.namespace)?.object
    if (!home) throw notFound({ group: '', plural: 'namespaces', kind: 'Namespace' }, meta.namespace)
    if (!home.metadata.deletionTimestamp) return
    const why = `unable to create new content in namespace ${meta.namespace} because it is being terminated`
    const cause = {
      reason: 'NamespaceTerminating',
      message: `namespace ${meta.namespace} is being terminated`,
      field: 'metadata.namespace',
    }
    throw forbidden(kind, meta.name ?? '', why, [cause])
  }

  #checkIdentity(kind: Kind, { metadata }: KubeObject, old: KubeObject): void {
    const { name, namespace, uid, resourceVersion } = old.metadata
    if (metadata.name !== undefined && metadata.name !== name) {
      throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
    }
    if (metadata.namespace && metadata.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
    }
    if (metadata.uid && metadata.uid !== uid) {
      throw conflict(
        kind,
        name,
        `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
      )
    }
    if (metadata.resourceVersion && metadata.resourceVersion !== resourceVersion) throw modified(kind, name)
  }

  /** Each door writes its own part: the main one all but status, the status one only that. */
  #keepWhatIsNotWritten(kind: Kind, object: KubeObject, old: KubeObject, subresource: string): void {
    const { managedFields = old.metadata.managedFields } = object.metadata
    if (subresource === 'status') {
      const { status } = object
      for (const name of Object.keys(object)) delete object[name]
      Object.assign(object, clone(old), { status })
    } else if (kind.hasStatus) {
      if (old.status === undefined) delete object.status
      else object.status = clone(old.status)
    }
    const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = old.metadata
    const fixed = { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp }
    const { deletionGracePeriodSeconds } = old.metadata
    object.metadata = clone({ ...object.metadata, ...fixed, deletionGracePeriodSeconds, managedFields })
  }

  #check(kind: Kind, object: KubeObject, old?: KubeObject): void {
    const causes = checkMeta(object.metadata, kind.nameRule, kind.namespaced)
    causes.push(...(kind.strategy.validate?.(object, old) ?? []))
    if (old?.metadata.deletionTimestamp) {
      const added = (object.metadata.finalizers ?? []).filter((name) => !old.metadata.finalizers?.includes(name))
      if (added.length > 0) {
        const names = added.map((name) => JSON.stringify(name)).join(', ')
        const why = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${names}}`
        causes.push(forbiddenValue('metadata.finalizers', why))
      }
    }
    if (causes.length > 0) throw invalid(kind.group, kind.kind, object.metadata.name ?? '', causes)
  }

  #take(kind: Kind, object: KubeObject, old?: KubeObject): void {
    const causes = kind.strategy.allocate?.(object, old) ?? []
    if (causes.length > 0) throw invalid(kind.group, kind.kind, object.metadata.name, causes)
  }

  #track(kind: Kind, object: KubeObject, old: KubeObject | undefined, options: WriteOptions): void {
    if (options.track) options.track(object)
    if (options.track || !options.fieldManager || kind.storedAs) return
    const writer: Writer = {
      manager: options.fieldManager,
      operation: 'Update',
      subresource: options.subresource ?? '',
      apiVersion: apiVersionOf(kind),
    }
    trackUpdate(object, old, definitions.get(kind.type), writer)
  }
}

/** Only who wrote when differs: not a change. */
function unchanged(object: KubeObject, old: KubeObject): boolean {
  const without = ({ metadata, ...rest }: KubeObject) => ({
    ...rest,
    metadata: { ...metadata, managedFields: metadata.managedFields?.map((entry) => ({ ...entry, time: '' })) },
  })
  return equal(without(object), without(old))
}

function desiredChanged(object: KubeObject, old: KubeObject): boolean {
  const desired = ({ metadata: _metadata, status: _status, ...rest }: KubeObject) => rest
  return !equal(desired(object), desired(old))
}
