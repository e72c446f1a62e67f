import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { damaged, fuzzing, oddObjects } from '../../scripts/testing/damaged.js'
import {
  endpointsFromKubernetes,
  keptKeys,
  nodeFromKubernetes,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from './index.js'

// Whatever an API server sends, an object is used or left out with a reason. It never stops the others.

const kept = keptKeys(['*'], ['*'])
const metadata = { name: 'web', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web', app: 'x' } }

const service = {
  metadata: { ...metadata, annotations: { 'kpng.sigs.k8s.io/map-ip': 'false' } },
  spec: {
    ...{ type: 'LoadBalancer', clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'] },
    ...{ externalIPs: ['192.0.2.1'], loadBalancerSourceRanges: ['10.0.0.0/8'], externalTrafficPolicy: 'Local' },
    ...{ sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 10 } } },
    ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'web', nodePort: 30_080 }],
  },
  status: { loadBalancer: { ingress: [{ ip: '198.51.100.1', ipMode: 'VIP', ports: [{ port: 80 }] }] } },
}

const slice = {
  metadata,
  addressType: 'IPv4',
  ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  endpoints: [
    {
      addresses: ['10.244.0.5'],
      conditions: { ready: true, serving: true, terminating: false },
      ...{
        hostname: 'a',
        nodeName: 'node-a',
        zone: 'z',
        hints: { forZones: [{ name: 'z' }], forNodes: [{ name: 'n' }] },
      },
    },
  ],
}

const node = {
  metadata: { ...metadata, labels: { 'topology.kubernetes.io/zone': 'z' } },
  spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24', 'fd00:1::/64'], taints: [{ key: 'a', effect: 'b' }] },
  status: { addresses: [{ type: 'InternalIP', address: '172.30.0.1' }] },
}

const writes = <D extends DescMessage>(schema: D, message: MessageShape<D> | undefined) => {
  if (message) expect(toBinary(schema, message)).toBeInstanceOf(Uint8Array)
}

const decoders: Readonly<Record<string, readonly [good: object, decode: (object: unknown) => void]>> = {
  Service: [
    service,
    (object) =>
      writes(
        localv1.ServiceSchema,
        serviceFromKubernetes(object, kept, () => {}),
      ),
  ],
  EndpointSlice: [slice, (object) => void endpointsFromKubernetes(object, () => {}, String)],
  Node: [
    node,
    (object) =>
      writes(
        globalv1.NodeSchema,
        nodeFromKubernetes(object, kept, () => {}),
      ),
  ],
  ServiceCIDR: [
    { metadata: { name: 'a' }, spec: { cidrs: ['10.96.0.0/16', 'fd00::/112'] } },
    (object) =>
      writes(
        localv1.ServiceCIDRSchema,
        serviceCidrFromKubernetes(object, () => {}),
      ),
  ],
}

describe.each(Object.entries(decoders))('%s', (_, [good, decode]) => {
  it('is used as it is', () => decode(good))
  it('with damage is used or left out', () => {
    fc.assert(fc.property(damaged(good), decode), fuzzing(oddObjects))
  })
})
