import { clone } from '../objects/json.js'
import type { KubeEvent } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { type Registry, randomSuffix } from '../registry/registry.js'

const eventLimit = 500

/** Tells people what happened to an object, where they look: `kubectl describe` and `kubectl get events`. */
export class EventRecorder {
  readonly #made = new Map<string, string>()
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string, component: string): void {
    const { kinds, store } = this.#registry
    const kind = kinds.byKind('v1', 'Event')
    const namespace = object.metadata.namespace ?? 'default'
    const home = store.get('namespaces', namespace)?.object
    if (!kind || !home || home.metadata.deletionTimestamp) return
    const same = [object.metadata.uid, reason, message].join(' ')
    const now = timestamp()
    const before = this.#made.get(same)
    const known = before === undefined ? undefined : store.get('events', before)
    if (before !== undefined && known) {
      const again = clone(known.object) as KubeEvent
      again.count = (again.count ?? 1) + 1
      again.lastTimestamp = now
      store.put('events', before, again)
      return
    }
    const { name, uid, resourceVersion } = object.metadata
    const event: KubeEvent = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${randomSuffix(16)}` },
      involvedObject: {
        kind: object.kind,
        namespace: object.metadata.namespace,
        name,
        uid,
        apiVersion: object.apiVersion,
        resourceVersion,
      },
      reason,
      message,
      type,
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
      firstTimestamp: now,
      lastTimestamp: now,
      eventTime: null,
      count: 1,
    }
    const { metadata } = this.#registry.create(kind, namespace, event)
    this.#made.set(same, `${namespace}/${metadata.name}`)
    this.#forgetOldest()
  }

  /** A real API server drops events after an hour; here their number is bounded. */
  #forgetOldest(): void {
    if (this.#made.size <= eventLimit) return
    const [same, key] = [...this.#made][0] ?? ['', '']
    this.#made.delete(same)
    this.#registry.store.remove('events', key)
  }
}
