import type { EndpointRecord, Store } from '../store/index.js'
import { endpoint, service } from './objects.js'

const endpointsOfSlice = 100

export interface LargeServiceOptions {
  /** A multiple of 100, which is what a slice holds. Each is on a node of its own: `node-0`, `node-1`, … */
  readonly endpoints: number
  readonly externalTrafficToLocal?: boolean
  /** Whether hints keep the traffic of each node on the node. */
  readonly nodeHints?: boolean
  /** Seen by each endpoint before it is written. */
  readonly wrap?: (record: EndpointRecord) => EndpointRecord
}

/** A service of many endpoints, and the change of one of them. */
export function largeService(store: Store, options: LargeServiceOptions): { change(): void } {
  const { endpoints, externalTrafficToLocal = false, nodeHints = false, wrap = (record) => record } = options
  const record = (index: number, ready: boolean): EndpointRecord =>
    endpoint(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, {
      podName: `pod-${index}`,
      node: `node-${index}`,
      ready,
      ...(nodeHints ? { nodes: [`node-${index}`] } : {}),
    })
  let changes = 0
  const records = Array.from({ length: endpoints }, (_, index) => wrap(record(index, true)))
  const slice = (number: number) => ({
    namespace: 'default',
    name: `large-${number}`,
    service: 'large',
    endpoints: records.slice(number * endpointsOfSlice, (number + 1) * endpointsOfSlice),
  })
  store.update((tx) => {
    const ips = { clusterIps: { v4: ['10.96.0.10'] }, externalIps: { v4: ['192.0.2.1'] } }
    tx.setService(service('large', { externalTrafficToLocal, ips, type: 'LoadBalancer' }))
    for (let number = 0; number < endpoints / endpointsOfSlice; number++) tx.setEndpoints(slice(number))
  })
  return {
    change() {
      records[0] = wrap(record(0, ++changes % 2 === 0))
      store.update((tx) => tx.setEndpoints(slice(0)))
    },
  }
}
