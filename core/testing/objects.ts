import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import { conditionsOf, type EndpointRecord, none, Store, type StoreOptions } from '../store/index.js'

// Short ways to write the objects that tests are about.

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>

export const service = (name: string, init: ServiceInit = {}): localv1.Service => {
  const usual: ServiceInit = {
    namespace: 'default',
    name,
    type: 'ClusterIP',
    ips: { clusterIps: { v4: ['10.96.0.10'] }, externalIps: {} },
    ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080 }],
  }
  return create(localv1.ServiceSchema, { ...usual, ...init } as ServiceInit)
}

export interface EndpointInit extends Partial<Omit<EndpointRecord, 'conditions' | 'hints'>> {
  ready?: boolean
  serving?: boolean
  terminating?: boolean
  zones?: readonly string[]
  nodes?: readonly string[]
}

/** An endpoint from its address; IPv6 when it has a colon. */
export function endpoint(ip: string, init: EndpointInit = {}): EndpointRecord {
  const { ready, serving, terminating, zones, nodes, ...rest } = init
  const conditions = { ...(ready === undefined ? {} : { ready }), ...(serving === undefined ? {} : { serving }) }
  return {
    podName: '',
    hostname: '',
    v4: ip.includes(':') ? none : [ip],
    v6: ip.includes(':') ? [ip] : none,
    ports: [{ name: 'http', port: 8080 }],
    node: '',
    zone: '',
    hints: zones || nodes ? { zones: zones ?? none, nodes: nodes ?? none } : undefined,
    conditions: conditionsOf({ ...conditions, terminating: terminating ?? false }),
    ...rest,
  }
}

/** An endpoint that counts how often somebody looks at its addresses, as comparing and selecting do. */
export function countingLooks(record: EndpointRecord): { endpoint: EndpointRecord; looked: () => number } {
  let looks = 0
  const { v4 } = record
  const counted = Object.defineProperty({ ...record }, 'v4', {
    enumerable: true,
    get: () => {
      looks++
      return v4
    },
  })
  return { endpoint: counted, looked: () => looks }
}

export const node = (name: string, zone = ''): globalv1.Node =>
  create(globalv1.NodeSchema, { name, topology: { node: name, zone } })

/** A store whose source has read everything. */
export function syncedStore(options: StoreOptions = {}): Store {
  const store = new Store(options)
  store.update((tx) => tx.setSynced('services', 'endpoints', 'nodes'))
  return store
}
