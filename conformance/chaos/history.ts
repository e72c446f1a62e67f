import type { KubernetesObject } from '../cases/case.js'

/** What a proxy asks an API server for. */
export const resources = [
  { name: 'services', kind: 'Service', path: '/api/v1/services' },
  { name: 'endpointslices', kind: 'EndpointSlice', path: '/apis/discovery.k8s.io/v1/endpointslices' },
  { name: 'nodes', kind: 'Node', path: '/api/v1/nodes' },
  { name: 'servicecidrs', kind: 'ServiceCIDR', path: '/apis/networking.k8s.io/v1/servicecidrs' },
] as const
export type Resource = (typeof resources)[number]['name']

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubernetesObject
}

interface Recorded extends WatchEvent {
  readonly version: number
  readonly resource: Resource
}

interface Snapshot {
  readonly version: number
  readonly objects: readonly KubernetesObject[]
}

/** For how many changes earlier states are kept. */
const snapshotsKept = 20

const keyOf = ({ kind, metadata }: KubernetesObject): string => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`

/** All objects with a version for each change, as an API server keeps them. */
export class History {
  readonly #objects = new Map<string, { readonly text: string; readonly object: KubernetesObject }>()
  #events: Recorded[] = []
  #snapshots: Snapshot[] = []
  #version = 1
  /** Events up to this version are forgotten. */
  #forgotten = 1

  get version(): number {
    return this.#version
  }

  /** The version of the earliest state that is kept. */
  get oldest(): number {
    return this.#snapshots[0]?.version ?? this.#version
  }

  /** Makes these all there is. */
  apply(objects: readonly KubernetesObject[]): void {
    this.#snapshots = [...this.#snapshots, this.#snapshot()].slice(-snapshotsKept)
    const wanted = new Set(objects.map(keyOf))
    for (const [key, { object }] of this.#objects) if (!wanted.has(key)) this.#record('DELETED', object)
    for (const object of objects) {
      const before = this.#objects.get(keyOf(object))
      const text = JSON.stringify(object)
      if (before?.text !== text) this.#record(before ? 'MODIFIED' : 'ADDED', object, text)
    }
  }

  #record(type: WatchEvent['type'], given: KubernetesObject, text = ''): void {
    const version = ++this.#version
    const resource = resources.find(({ kind }) => kind === given.kind)
    if (!resource) return
    const object = { ...given, metadata: { ...given.metadata, uid: keyOf(given), resourceVersion: `${version}` } }
    if (type === 'DELETED') this.#objects.delete(keyOf(given))
    else this.#objects.set(keyOf(given), { text, object })
    this.#events.push({ type, object, version, resource: resource.name })
  }

  #snapshot = (): Snapshot => ({
    version: this.#version,
    objects: [...this.#objects.values()].map(({ object }) => object),
  })

  now = (resource: Resource): Snapshot => ofKind(this.#snapshot(), resource)

  /** The earliest state that is kept. */
  earlier = (resource: Resource): Snapshot => ofKind(this.#snapshots[0] ?? this.#snapshot(), resource)

  /** Whether every event after a version is still known. Lists of earlier states can be followed too. */
  reachesBackTo(version: number): boolean {
    return version >= this.#forgotten && version <= this.#version
  }

  since(resource: Resource, version: number): WatchEvent[] {
    return this.#events
      .filter((event) => event.version > version && event.resource === resource)
      .map(({ type, object }) => ({ type, object }))
  }

  /** Events that came before the earliest state that is kept are forgotten. */
  forget(): void {
    this.#forgotten = this.oldest
    this.#events = this.#events.filter(({ version }) => version > this.#forgotten)
  }
}

const ofKind = ({ version, objects }: Snapshot, resource: Resource): Snapshot => {
  const kind = resources.find(({ name }) => name === resource)?.kind
  return { version, objects: objects.filter((object) => object.kind === kind) }
}
