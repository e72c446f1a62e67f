import { beforeEach, describe, expect, it } from 'vitest'
import { Kinds } from '../kinds/index.js'
import { clone } from '../objects/json.js'
import type { Service, ServiceSpec } from '../objects/kinds.js'
import type { KubeObject } from '../objects/types.js'
import { Registry } from '../registry/registry.js'
import type { StatusError } from '../status/status.js'
import { Store } from '../storage/store.js'
import { contains, numberToAddress, parseCidr } from './cidr.js'
import { ServiceNetwork } from './network.js'

let registry: Registry
const kind = () => registry.kinds.byResource('', 'v1', 'services') as NonNullable<ReturnType<Kinds['byResource']>>
const manifest = (name: string, spec: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec,
})
const create = (name: string, spec: object = {}): Service =>
  registry.create(kind(), 'default', manifest(name, { ports: [{ port: 80 }], ...spec })) as Service
const change = (name: string, edit: (spec: ServiceSpec) => void): Service => {
  const copy = clone(registry.get(kind(), 'default', name)) as Service
  edit(copy.spec)
  return registry.update(kind(), 'default', name, copy) as Service
}

function start(...cidrs: string[]): void {
  const store = new Store({ logSize: 100 })
  const network = new ServiceNetwork(store, { first: 30000, last: 30004 })
  registry = new Registry(store, new Kinds(network))
  const make = (apiVersion: string, name: string, metadata: { name: string }, fields = {}) => {
    const found = registry.kinds.byKind(apiVersion, name)
    if (found) registry.create(found, undefined, { apiVersion, kind: name, metadata, ...fields })
  }
  make('v1', 'Namespace', { name: 'default' })
  make('networking.k8s.io/v1', 'ServiceCIDR', { name: 'kubernetes' }, { spec: { cidrs } })
}

beforeEach(() => start('10.0.0.0/24', 'fd00::/112'))

describe('defaults', () => {
  it('are those of the API server', () => {
    expect(create('web').spec).toEqual({
      type: 'ClusterIP',
      clusterIP: '10.0.0.17',
      clusterIPs: ['10.0.0.17'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    })
  })
  it.each([
    ['ClientIP', { sessionAffinity: 'ClientIP' }, { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } } }],
    [
      'NodePort',
      { type: 'NodePort' },
      { externalTrafficPolicy: 'Cluster', ports: [{ port: 80, protocol: 'TCP', targetPort: 80, nodePort: 30000 }] },
    ],
    [
      'LoadBalancer',
      { type: 'LoadBalancer' },
      { allocateLoadBalancerNodePorts: true, externalTrafficPolicy: 'Cluster' },
    ],
    [
      'LoadBalancer without node ports',
      { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false },
      { ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }] },
    ],
    [
      'LoadBalancer with Local',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
      { healthCheckNodePort: 30001 },
    ],
    [
      'headless',
      { clusterIP: 'None', selector: { a: 'b' } },
      { clusterIPs: ['None'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
    ],
    [
      'headless without selector',
      { clusterIP: 'None' },
      { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' },
    ],
    ['external IPs', { externalIPs: ['192.0.2.1'] }, { externalTrafficPolicy: 'Cluster' }],
    [
      'PreferDualStack',
      { ipFamilyPolicy: 'PreferDualStack' },
      { ipFamilies: ['IPv4', 'IPv6'], clusterIPs: ['10.0.0.17', 'fd00::101'] },
    ],
    [
      'RequireDualStack, IPv6 first',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      { clusterIP: 'fd00::101' },
    ],
    ['IPv6 only', { ipFamilies: ['IPv6'] }, { clusterIPs: ['fd00::101'], ipFamilyPolicy: 'SingleStack' }],
    ['families from given addresses', { clusterIP: 'fd00::7' }, { ipFamilies: ['IPv6'], clusterIPs: ['fd00::7'] }],
  ])('%s', (_, spec, expected) => {
    expect(create('web', spec).spec).toMatchObject(expected)
  })
  it('ExternalName has no addresses', () => {
    const { spec } = create('web', { type: 'ExternalName', externalName: 'example.com', ports: [] })
    expect(spec).toEqual({ type: 'ExternalName', externalName: 'example.com', ports: [], sessionAffinity: 'None' })
  })
  it('PreferDualStack on one family takes one address', () => {
    start('10.0.0.0/24')
    expect(create('web', { ipFamilyPolicy: 'PreferDualStack' }).spec.clusterIPs).toEqual(['10.0.0.17'])
  })
})

describe('validation says what the API server says', () => {
  const tooLong = 'a'.repeat(64)
  it.each<[string, string, object, string]>([
    [
      'a port of zero',
      'web',
      { ports: [{ port: 0 }] },
      'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
    ['no ports', 'web', { ports: [] }, 'spec.ports: Required value'],
    [
      'ports without names',
      'web',
      { ports: [{ port: 1 }, { port: 2, name: 'b' }] },
      'spec.ports[0].name: Required value',
    ],
    [
      'names twice',
      'web',
      {
        ports: [
          { port: 1, name: 'b' },
          { port: 2, name: 'b' },
        ],
      },
      'spec.ports[1].name: Duplicate value: "b"',
    ],
    [
      'ports twice',
      'web',
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 1, name: 'b' },
        ],
      },
      'spec.ports[1]: Duplicate value: {"protocol":"TCP","port":1}',
    ],
    [
      'a protocol',
      'web',
      { ports: [{ port: 1, protocol: 'ICMP' }] },
      'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
    ],
    [
      'a node port of a ClusterIP',
      'web',
      { ports: [{ port: 1, nodePort: 30001 }] },
      "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ],
    [
      'a node port out of range',
      'web',
      { type: 'NodePort', ports: [{ port: 1, nodePort: 80 }] },
      'provided port is not in the valid range. The range of valid ports is 30000-30004',
    ],
    [
      'a type',
      'web',
      { type: 'Magic' },
      'spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
    ],
    [
      'an affinity',
      'web',
      { sessionAffinity: 'X' },
      'spec.sessionAffinity: Unsupported value: "X": supported values: "ClientIP", "None"',
    ],
    [
      'an affinity timeout',
      'web',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
      'must be greater than 0 and less than 86400',
    ],
    ['a name', '1web', {}, 'metadata.name: Invalid value: "1web": a DNS-1035 label must consist of'],
    ['a long name', tooLong, {}, 'must be no more than 63 characters'],
    [
      'an address outside',
      'web',
      { clusterIP: '10.9.9.9' },
      'spec.clusterIPs: Invalid value: ["10.9.9.9"]: failed to allocate IP 10.9.9.9: the provided IP (10.9.9.9) is not in the valid range.',
    ],
    ['an address that is none', 'web', { clusterIP: '010.0.0.1' }, 'must be a valid IP address'],
    [
      'source ranges without load balancer',
      'web',
      { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      "may only be used when `type` is 'LoadBalancer'",
    ],
    [
      'a source range',
      'web',
      { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/33'] },
      'must be a valid CIDR value',
    ],
    [
      'a policy nobody outside can use',
      'web',
      { externalTrafficPolicy: 'Local' },
      'may only be set for externally-accessible services',
    ],
    [
      'a health check port without Local',
      'web',
      { type: 'LoadBalancer', healthCheckNodePort: 30001 },
      'spec.healthCheckNodePort: Invalid value: 30001',
    ],
    [
      'two families without policy',
      'web',
      { ipFamilies: ['IPv4', 'IPv6'] },
      'spec.ipFamilyPolicy: Invalid value: null: must be',
    ],
    ['a distribution', 'web', { trafficDistribution: 'Near' }, 'spec.trafficDistribution: Unsupported value: "Near"'],
    ['no external name', 'web', { type: 'ExternalName', ports: [] }, 'spec.externalName: Required value'],
  ])('%s', (_, name, spec, message) => {
    expect(() => create(name, spec)).toThrow(message)
  })
  it('as a Status with causes', () => {
    try {
      create('web', { ports: [{ port: 0, targetPort: 80 }], type: 'Magic' })
      expect.unreachable()
    } catch (error) {
      const { status } = error as StatusError
      expect(status).toMatchObject({ code: 422, reason: 'Invalid', details: { name: 'web', kind: 'Service' } })
      expect(status.message).toMatch(/^Service "web" is invalid: \[spec.ports\[0\].port: /)
      expect(status.details?.causes?.map(({ field }) => field)).toEqual(['spec.ports[0].port', 'spec.type'])
    }
  })
  it('refuses dual stack on a cluster of one family', () => {
    start('10.0.0.0/24')
    expect(() => create('web', { ipFamilyPolicy: 'RequireDualStack' })).toThrow(
      'this cluster is not configured for dual-stack services',
    )
    expect(() => create('web', { ipFamilies: ['IPv6'] })).toThrow(
      'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
    )
  })
})

describe('allocation', () => {
  it('gives addresses and node ports once, and takes them back', () => {
    create('a', { clusterIP: '10.0.0.9', type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] })
    expect(() => create('b', { clusterIP: '10.0.0.9' })).toThrow(
      'failed to allocate IP 10.0.0.9: provided IP is already allocated',
    )
    expect(() => create('b', { type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] })).toThrow(
      'spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated',
    )
    registry.store.remove('services', 'default/a')
    expect(
      create('b', { clusterIP: '10.0.0.9', type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] }).spec.clusterIP,
    ).toBe('10.0.0.9')
  })
  it('gives TCP and UDP of the same port one node port', () => {
    const ports = [
      { name: 'tcp', port: 53 },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ]
    const { spec } = create('dns', { type: 'NodePort', ports })
    expect(spec.ports?.map(({ nodePort }) => nodePort)).toEqual([30000, 30000])
  })
  it('says when nothing is left', () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) create(name, { type: 'NodePort' })
    expect(() => create('f', { type: 'NodePort' })).toThrow('range is full')
  })
  it('a dry run takes nothing', () => {
    const dry = manifest('a', { type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] })
    registry.create(kind(), 'default', dry, { dryRun: true })
    expect(create('b', { type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] }).spec.ports?.[0]?.nodePort).toBe(
      30001,
    )
  })
})

describe('changes', () => {
  it('keep the cluster IP', () => {
    create('web')
    expect(() =>
      change('web', (spec) => Object.assign(spec, { clusterIP: '10.0.0.99', clusterIPs: ['10.0.0.99'] })),
    ).toThrow('spec.clusterIPs[0]: Invalid value: ["10.0.0.99"]: may not change once set')
    const replaced = registry.update(kind(), 'default', 'web', manifest('web', { ports: [{ port: 81 }] })) as Service
    expect(replaced.spec.clusterIP).toBe('10.0.0.17')
  })
  it('of type leave behind what only the old type had', () => {
    create('web', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' })
    const { spec } = change('web', (spec) => Object.assign(spec, { type: 'ClusterIP' }))
    expect(spec).not.toHaveProperty('healthCheckNodePort')
    expect(spec).not.toHaveProperty('externalTrafficPolicy')
    expect(spec).not.toHaveProperty('allocateLoadBalancerNodePorts')
    expect(spec.ports).toEqual([{ port: 80, protocol: 'TCP', targetPort: 80 }])
    expect(
      create('other', { type: 'NodePort', ports: [{ port: 80, nodePort: 30000 }] }).spec.ports?.[0]?.nodePort,
    ).toBe(30000)
  })
  it('to ExternalName and back release and take the address', () => {
    create('web')
    expect(
      change('web', (spec) => Object.assign(spec, { type: 'ExternalName', externalName: 'a.b' })).spec.clusterIP,
    ).toBeUndefined()
    expect(change('web', (spec) => Object.assign(spec, { type: 'ClusterIP' })).spec.clusterIP).toMatch(/^10\.0\.0\./)
  })
  it('to dual stack and back', () => {
    create('web')
    const dual = change('web', (spec) => Object.assign(spec, { ipFamilyPolicy: 'PreferDualStack' }))
    expect(dual.spec.clusterIPs).toHaveLength(2)
    const single = change('web', (spec) => Object.assign(spec, { ipFamilyPolicy: 'SingleStack' }))
    expect(single.spec.clusterIPs).toEqual(['10.0.0.17'])
    expect(single.spec.ipFamilies).toEqual(['IPv4'])
  })
})

describe('ranges', () => {
  it.each([
    ['10.0.0.0/24', '10.0.0.255', true],
    ['10.0.0.0/24', '10.0.1.0', false],
    ['fd00::/112', 'fd00::ffff', true],
    ['fd00::/112', '10.0.0.1', false],
    ['0.0.0.0/0', '255.255.255.255', true],
  ])('%s contains %s: %s', (range, address, expected) => {
    const cidr = parseCidr(range)
    expect(cidr && contains(cidr, address)).toBe(expected)
  })
  it.each(['10.0.0.0', '10.0.0.0/33', '10.0.0/8', '::/129', 'x/8', '10.0.0.0/8/8', '010.0.0.0/8'])(
    '%s is none',
    (text) => {
      expect(parseCidr(text)).toBeUndefined()
    },
  )
  it('writes IPv6 the canonical way', () => {
    expect(numberToAddress(0xfd000000000000000000000000000101n, 'IPv6')).toBe('fd00::101')
    expect(numberToAddress(1n, 'IPv6')).toBe('::1')
    expect(numberToAddress(0n, 'IPv6')).toBe('::')
  })
})
