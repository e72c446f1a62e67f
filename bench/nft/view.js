// Views to measure with: many services, each with a cluster IP and so many endpoints.
import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'

const address = (first, number) => `${first}.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

const endpoint = (number) =>
  create(localv1.EndpointSchema, {
    ips: { v4: [address(100, number)] },
    scopes: { internal: true, external: true, cluster: true },
  })

export function serviceItem(index, endpoints) {
  const service = create(localv1.ServiceSchema, {
    namespace: 'bench',
    name: `service-${index}`,
    type: 'ClusterIP',
    ips: { clusterIps: { v4: [address(10, index + 1)] } },
    ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080 }],
  })
  return { service, endpoints }
}

export function makeView(services, endpointsEach) {
  const items = new Map()
  for (let index = 0; index < services; index++) {
    const endpoints = Array.from({ length: endpointsEach }, (_, at) => endpoint(index * endpointsEach + at))
    items.set(`bench/service-${index}`, serviceItem(index, endpoints))
  }
  const node = create(globalv1.NodeSchema, { name: 'bench', addresses: ['172.30.0.1'] })
  return { nodeName: 'bench', node, services: items, serviceCidrs: new Map() }
}

export const nothing = { full: false, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

let fresh = 0x800000

/** What a rollout does to a service, one step at a time: an endpoint is replaced, one goes, one comes. */
const steps = {
  replace: (endpoints) => [endpoint(fresh++), ...endpoints.slice(1)],
  remove: (endpoints) => endpoints.slice(1),
  add: (endpoints) => [...endpoints, endpoint(fresh++)],
}

export const stepNames = Object.keys(steps)

/** Changes one service of a view, and says what changed. */
export function changeOne(view, index, step) {
  const path = `bench/service-${index % view.services.size}`
  const before = view.services.get(path)
  const after = { service: before.service, endpoints: steps[step](before.endpoints) }
  view.services.set(path, after)
  return { ...nothing, services: new Map([[path, { before, after }]]) }
}
