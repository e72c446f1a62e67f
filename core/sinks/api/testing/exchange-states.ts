import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { Store } from '../../../store/index.js'
import { endpoint, node, service } from '../../../testing/objects.js'

// The cluster that recorded exchanges tell of, step by step. Never change a step: the recordings are of it.

/** What the cluster is after each step. The first one is the whole state. */
const steps: Readonly<Record<string, (store: Store) => void>> = {
  first: (store) =>
    store.update((tx) => {
      tx.setService(service('web', webInit))
      tx.setEndpoints(slice('web-4', 'web', endpoint('10.1.0.1', onNode('a')), endpoint('10.1.1.1', onNode('b'))))
      tx.setEndpoints(slice('web-6', 'web', endpoint('fd01::1', onNode('a')), endpoint('fd01::2', onNode('b'))))
      for (let index = 0; index < 12; index++) {
        tx.setService(service(`plain-${index}`, { ips: { clusterIps: { v4: [`10.96.1.${index}`] } } }))
        const pods = [1, 2].map((pod) => endpoint(`10.2.${index}.${pod}`, { podName: `plain-${index}-${pod}` }))
        tx.setEndpoints(slice(`plain-${index}-1`, `plain-${index}`, ...pods))
      }
      tx.setService(service('nobody'))
      tx.setNode(node('node-a', 'zone-a'))
      tx.setNode(node('node-b', 'zone-b'))
      tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }))
      tx.setSynced('services', 'endpoints', 'nodes')
    }),
  'an endpoint terminates, a Service goes': (store) =>
    store.update((tx) => {
      const leaving = endpoint('10.1.1.1', { ...onNode('b'), ready: false, serving: true, terminating: true })
      tx.setEndpoints(slice('web-4', 'web', endpoint('10.1.0.1', onNode('a')), leaving))
      tx.deleteEndpoints('default', 'plain-3-1')
      tx.deleteService('default', 'plain-3')
    }),
  'an endpoint comes, a Service changes, another goes': (store) =>
    store.update((tx) => {
      const pods = [1, 2, 3].map((pod) => endpoint(`10.2.5.${pod}`, { podName: `plain-5-${pod}` }))
      tx.setEndpoints(slice('plain-5-1', 'plain-5', ...pods))
      tx.setService(service('nobody', { internalTrafficToLocal: true }))
      tx.deleteService('default', 'plain-7')
      tx.deleteEndpoints('default', 'plain-7-1')
    }),
}

const onNode = (letter: string) => ({
  podName: `web-${letter}`,
  node: `node-${letter}`,
  zone: `zone-${letter}`,
  zones: [`zone-${letter}`],
})

const webInit: Parameters<typeof service>[1] = {
  type: 'LoadBalancer',
  labels: { app: 'web' },
  ips: {
    clusterIps: { v4: ['10.96.0.1'], v6: ['fd00::1'] },
    externalIps: { v4: ['192.0.2.1'] },
    loadBalancerIps: { v4: ['198.51.100.1'] },
  },
  ports: [
    { name: 'http', protocol: localv1.Protocol.TCP, port: 80, nodePort: 30080, targetPort: 8080 },
    { name: 'dns', protocol: localv1.Protocol.UDP, port: 53, targetPortName: 'dns' },
  ],
  externalTrafficToLocal: true,
  healthCheckNodePort: 30081,
  ipFilters: [{ targetIps: { v4: ['198.51.100.1'] }, sourceRanges: ['203.0.113.0/24'] }],
  sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 10_800 } },
}

const slice = (name: string, of: string, ...endpoints: ReturnType<typeof endpoint>[]) => ({
  namespace: 'default',
  name,
  service: of,
  endpoints,
})

/** A store with the state of the first step, and the function that applies a further one. */
export function storeOfSteps(): { store: Store; apply: (step: string) => void } {
  const store = new Store()
  return {
    store,
    apply: (step) => {
      const change = steps[step]
      if (!change) throw new Error(`There is no step ${JSON.stringify(step)}`)
      change(store)
    },
  }
}
