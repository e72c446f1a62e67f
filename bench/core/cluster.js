// A cluster of any size, and a change of one endpoint in it.
import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import { conditionsOf, none, Store } from '@kpng/core/store'

const ports = [{ name: 'http', port: 8080 }]
const ready = conditionsOf()

const ip = (first, index) => `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`

export function makeCluster({ services, endpoints, nodes }) {
  const store = new Store()
  const generation = new Map()
  // One string for one node, as sources have it.
  const nodeNames = Array.from({ length: nodes }, (_, node) => `node-${node}`)
  const slice = (service) => ({
    namespace: 'default',
    name: `svc-${service}-1`,
    service: `svc-${service}`,
    endpoints: Array.from({ length: endpoints }, (_, index) => {
      const number = service * endpoints + index
      // A changed endpoint keeps its pod and gets another address, as a pod that was restarted.
      const address = ip(index === 0 && (generation.get(service) ?? 0) % 2 === 1 ? 11 : 10, number)
      return {
        podName: `svc-${service}-${index}`,
        hostname: '',
        v4: [address],
        v6: none,
        ports,
        node: nodeNames[number % nodes],
        zone: '',
        hints: undefined,
        conditions: ready,
      }
    }),
  })
  store.update((tx) => {
    for (let node = 0; node < nodes; node++) tx.setNode(create(globalv1.NodeSchema, { name: nodeNames[node] }))
    for (let service = 0; service < services; service++) {
      tx.setService(
        create(localv1.ServiceSchema, {
          namespace: 'default',
          name: `svc-${service}`,
          type: 'ClusterIP',
          ips: { clusterIps: { v4: [ip(172, service)] }, externalIps: {} },
          ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080 }],
        }),
      )
      tx.setEndpoints(slice(service))
    }
    tx.setSynced('services', 'endpoints', 'nodes')
  })
  return {
    store,
    /** Keeps this many endpoints of each service and removes the others, in one update. */
    keepOnly(count) {
      const slices = [...store.entries()].flatMap(({ namespace, name: service, sources }) =>
        [...sources].map(([name, all]) => ({ namespace, name, service, endpoints: all.slice(0, count) })),
      )
      store.update((tx) => {
        for (const smaller of slices) tx.setEndpoints(smaller)
      })
    },
    /** Gives the first endpoint of a service another address: one item for every node. */
    changeOne(service = Math.floor(Math.random() * services)) {
      generation.set(service, (generation.get(service) ?? 0) + 1)
      store.update((tx) => tx.setEndpoints(slice(service)))
    },
  }
}
