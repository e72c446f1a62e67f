import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import fc from 'fast-check'
import { conditionsOf, type EndpointRecord, type Transaction } from '../../store/index.js'
import { endpoint, node, service } from '../../testing/objects.js'

// Writes to a store that are full of what the view must get right: hints for nodes and for zones, nodes that change zone, Local policies,
// endpoints that come and go and that all terminate, virtual IPs of all kinds, ports that differ from slice to slice, addresses in two slices, pods in two families.

export type Write = (tx: Transaction) => void

/** Nodes that endpoints are on, or meant for. */
const busyNodes = ['node-a', 'node-b', 'node-c']
export const nodeNames = [...busyNodes, 'idle-node']
const zones = ['zone-a', 'zone-b', 'zone-c']
const sources = ['s1', 's2', 's3', 's4']
const services = ['a', 'b', 'c']

/** Hints are followed only if all ready endpoints have them, so they are given or withheld slice by slice. */
type Style = 'none' | 'zones' | 'nodes' | 'both' | 'some'

const aStyle = fc.constantFrom<Style>('none', 'none', 'zones', 'zones', 'nodes', 'nodes', 'both', 'some')

const conditions = fc.constantFrom(
  ...[{}, {}, {}, {}, { ready: true, terminating: true }],
  ...[{ ready: false }, { ready: false, serving: true, terminating: true }],
  { ready: false, serving: false, terminating: true },
)

export const anEndpoint = fc
  .record({
    ip: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 6 }).map((last) => `10.0.0.${last}`) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 200 }).map((last) => `10.0.1.${last}`) },
      { weight: 1, arbitrary: fc.constantFrom('fd00::1', 'fd00::2') },
    ),
    podName: fc.constantFrom('', 'pod-1', 'pod-2', 'pod-3'),
    node: fc.constantFrom('', ...busyNodes, ...busyNodes),
    conditions,
    forZones: fc.subarray(zones, { minLength: 1 }),
    forNodes: fc.subarray(busyNodes, { minLength: 1 }),
    keepsHints: fc.boolean(),
    ports: fc.constantFrom(
      ...[[{ name: 'http', port: 8080 }], [{ name: 'http', port: 8080 }], [{ name: 'http', port: 8081 }]],
      [
        { name: 'http', port: 8080 },
        { name: 'admin', port: 9 },
      ],
      [{ name: 'admin', port: 9 }],
      [{ name: 'http', port: 8080, protocol: localv1.Protocol.UDP }],
      undefined,
      [],
    ),
  })
  .map(({ ip, conditions, forZones, forNodes, keepsHints, ...rest }) => (style: Style): EndpointRecord => {
    const isHinted = style === 'some' ? keepsHints : style !== 'none'
    const zones = isHinted && style !== 'nodes' ? { zones: forZones } : {}
    const nodes = isHinted && style !== 'zones' ? { nodes: forNodes } : {}
    return endpoint(ip, { ...rest, ...conditions, ...zones, ...nodes })
  })

export const someEndpoints: fc.Arbitrary<EndpointRecord[]> = fc
  .tuple(
    aStyle,
    fc.oneof(
      { weight: 6, arbitrary: fc.array(anEndpoint, { maxLength: 4 }) },
      // So many that the view has an index for them.
      { weight: 1, arbitrary: fc.array(anEndpoint, { minLength: 17, maxLength: 22 }) },
    ),
  )
  .chain(([style, endpoints]) =>
    fc.constantFrom(false, false, false, true).map((areTerminating) =>
      endpoints.map((make) => {
        const made = make(style)
        // Only such a service has endpoints that stand in.
        return areTerminating ? { ...made, conditions: conditionsOf({ ready: false, terminating: true }) } : made
      }),
    ),
  )

interface IpSet {
  v4?: string[]
  v6?: string[]
}

export const aService = fc
  .record({
    name: fc.constantFrom(...services),
    type: fc.constantFrom('ClusterIP', 'NodePort'),
    internalTrafficToLocal: fc.boolean(),
    externalTrafficToLocal: fc.boolean(),
    nodePort: fc.constantFrom(0, 0, 30080),
    externalIps: fc.constantFrom<IpSet>({}, {}, { v4: ['192.0.2.1'] }, { v6: ['2001:db8::1'] }),
    loadBalancerIps: fc.constantFrom<IpSet>({}, {}, { v4: ['192.0.2.2'] }, { v4: ['192.0.2.3'], v6: ['2001:db8::2'] }),
    ports: fc.constantFrom(0, 1, 1, 2),
    protocol: fc.constantFrom(localv1.Protocol.TCP, localv1.Protocol.UDP),
  })
  .map(({ name, nodePort, ports, protocol, externalIps, loadBalancerIps, ...rest }) => {
    const ips = { clusterIps: { v4: ['10.96.0.10'] }, externalIps, loadBalancerIps }
    const http = { name: 'http', protocol, port: 80, targetPort: 8080, nodePort }
    const admin = { name: 'admin', protocol: localv1.Protocol.TCP, port: 81, targetPortName: 'admin' }
    return service(name, { ...rest, ips, ports: [http, admin].slice(0, ports) })
  })

const write = <T>(arbitrary: fc.Arbitrary<T>, apply: (tx: Transaction, value: T) => void): fc.Arbitrary<Write> =>
  arbitrary.map((value) => (tx) => apply(tx, value))

const aNode = fc.record({
  name: fc.constantFrom(...nodeNames),
  zone: fc.constantFrom('', ...zones),
  byLabel: fc.boolean(),
})

export const aWrite: fc.Arbitrary<Write> = fc.oneof(
  { weight: 3, arbitrary: write(aService, (tx, service) => tx.setService(service)) },
  { weight: 1, arbitrary: write(fc.constantFrom(...services), (tx, name) => tx.deleteService('default', name)) },
  {
    weight: 6,
    arbitrary: write(
      fc.record({
        name: fc.constantFrom(...sources),
        service: fc.constantFrom(...services),
        endpoints: someEndpoints,
        trigger: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      }),
      (tx, { trigger, ...source }) => tx.setEndpoints({ namespace: 'default', ...source }, trigger),
    ),
  },
  { weight: 1, arbitrary: write(fc.constantFrom(...sources), (tx, name) => tx.deleteEndpoints('default', name)) },
  {
    weight: 3,
    arbitrary: write(aNode, (tx, { name, zone, byLabel }) => {
      const given = node(name, byLabel ? '' : zone)
      if (byLabel && zone !== '') given.labels['topology.kubernetes.io/zone'] = zone
      tx.setNode(given)
    }),
  },
  { weight: 1, arbitrary: write(fc.constantFrom(...nodeNames), (tx, name) => tx.deleteNode(name)) },
  {
    weight: 1,
    arbitrary: write(fc.constantFrom('one', 'two'), (tx, name) =>
      tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name, cidrs: ['10.96.0.0/16'] })),
    ),
  },
  { weight: 1, arbitrary: write(fc.constantFrom('one', 'two'), (tx, name) => tx.deleteServiceCidr(name)) },
)
