import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import { beforeEach, describe, expect, test } from 'vitest'
import { Store } from '../../store/index.js'
import { recordingLog } from '../../testing/until.js'
import { Skips } from '../skips.js'
import { RelayedState } from './relayed-state.js'

const { GLOBAL_SERVICE_INFOS, GLOBAL_ENDPOINT_INFOS, GLOBAL_NODE_INFOS, GLOBAL_SERVICE_CIDRS } = localv1.Set

const ref = (set: localv1.Set, path: string) => create(localv1.RefSchema, { set, path })
const value = (set: localv1.Set, path: string, bytes: Uint8Array) =>
  create(localv1.ValueSchema, { ref: ref(set, path), bytes })

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>

function service(init: ServiceInit = {}, path = 'default|web||'): localv1.Value {
  const usual: ServiceInit = {
    namespace: 'default',
    name: 'web',
    ips: { clusterIps: { v4: ['10.96.0.1'], v6: ['fd00::1'] } },
    ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080 }],
  }
  const info = create(globalv1.ServiceInfoSchema, { service: { ...usual, ...init } as ServiceInit })
  return value(GLOBAL_SERVICE_INFOS, path, toBinary(globalv1.ServiceInfoSchema, info))
}

function endpoint(
  init: MessageInitShape<typeof globalv1.EndpointInfoSchema> = {},
  path = 'default|web|web-1|1f',
): localv1.Value {
  const usual = { endpoint: { ips: { v4: ['10.0.0.1'] }, portOverrides: [{ name: 'http', port: 8080 }] } }
  const info = create(globalv1.EndpointInfoSchema, { ...usual, ...init } as typeof usual)
  return value(GLOBAL_ENDPOINT_INFOS, path, toBinary(globalv1.EndpointInfoSchema, info))
}

const node = (name: string, path = `|${name}||`, init: { addresses?: string[]; podCidrs?: string[] } = {}) => {
  const info = create(globalv1.NodeInfoSchema, { node: { name, ...init } })
  return value(GLOBAL_NODE_INFOS, path, toBinary(globalv1.NodeInfoSchema, info))
}

const cidr = (name: string, range: string, path = `|${name}||`) =>
  value(
    GLOBAL_SERVICE_CIDRS,
    path,
    toBinary(localv1.ServiceCIDRSchema, create(localv1.ServiceCIDRSchema, { name, cidrs: [range] })),
  )

let store: Store
let skips: Skips
let lines: string[]
let state: RelayedState
beforeEach(() => {
  const recording = recordingLog()
  lines = recording.lines
  store = new Store()
  skips = new Skips(recording.log)
  state = new RelayedState(skips)
})

function told(sets: localv1.Value[], { deletes = [] as localv1.Ref[], reset = false } = {}): void {
  store.update((tx) => state.apply({ reset, sets, deletes, triggers: [], timeline: undefined }, tx))
}

describe.each([
  ['a change set', false],
  ['a whole state', true],
])('%s', (_, reset) => {
  test('that is all right is taken whole', () => {
    told([node('node-1'), cidr('kubernetes', '10.96.0.0/16'), service(), endpoint()], { reset })
    expect(store.entry('default/web')?.service?.ips?.clusterIps?.v4).toEqual(['10.96.0.1'])
    expect(store.entry('default/web')?.sources.get('web-1')).toHaveLength(1)
    expect(store.nodes.size + store.serviceCidrs.size).toBe(2)
    expect(lines).toEqual([])
  })

  test.each([
    ['a cluster IP', service({ ips: { clusterIps: { v4: ['not an ip'] } } }), '\\"not an ip\\" is not an IPv4 address'],
    [
      'a cluster IP with a leading zero',
      service({ ips: { clusterIps: { v4: ['010.1.1.1'] } } }),
      'not an IPv4 address',
    ],
    ['the family of an IP', service({ ips: { externalIps: { v6: ['10.0.0.1'] } } }), 'is not an IPv6 address'],
    ['a load-balancer IP', service({ ips: { loadBalancerIps: { v4: ['1.2.3'] } } }), 'is not an IPv4 address'],
    ['a port', service({ ports: [{ port: 99_999 }] }), 'The port 99999 is not between 1 and 65535'],
    ['port 0', service({ ports: [{ port: 0 }] }), 'The port 0 is not'],
    ['a node port', service({ ports: [{ port: 80, nodePort: 70_000 }] }), 'The node port 70000 is not'],
    ['a target port', service({ ports: [{ port: 80, targetPort: -1 }] }), 'The target port -1 is not'],
    ['a port name', service({ ports: [{ name: 'a/b', port: 80 }] }), 'The port name'],
    ['a health-check port', service({ healthCheckNodePort: 65_536 }), 'The health-check node port 65536'],
    ['a source range', service({ ipFilters: [{ sourceRanges: ['10.0.0.0/33'] }] }), 'is not a CIDR'],
    ['a filtered IP', service({ ipFilters: [{ targetIps: { v4: ['x'] } }] }), 'is not an IPv4 address'],
    [
      'an affinity',
      service({ sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: -1 } } }),
      'affinity of -1 s is not between 0 and 86400',
    ],
    [
      'a longer affinity than the API server allows',
      service({ sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 86_401 } } }),
      'affinity of 86401 s is not between 0 and 86400',
    ],
    ['a port name twice', service({ ports: [{ port: 80 }, { port: 81 }] }), 'The port name \\"\\" is there twice'],
    [
      'a port twice',
      service({
        ports: [
          { name: 'a', port: 80, protocol: 1 },
          { name: 'b', port: 80, protocol: 1 },
        ],
      }),
      'The port \\"1/80\\" is there twice',
    ],
    [
      'a node address',
      node('node-1', '|node-1||', { addresses: ['10.0.0.1', 'here'] }),
      '\\"here\\" is not an IP address',
    ],
    ['a pod CIDR of a node', node('node-1', '|node-1||', { podCidrs: ['10.0.0.0/33'] }), 'is not a CIDR'],
    ['a name', service({ name: 'web/x' }, 'default|web/x||'), 'The name \\"web/x\\" cannot be used'],
    ['a namespace', service({ namespace: '' }, '|web||'), 'The namespace \\"\\" cannot be used'],
    ['another path', service({ name: 'other' }), 'Its path should be \\"default|other||\\"'],
    ['bytes', value(GLOBAL_SERVICE_INFOS, 'default|web||', Buffer.from('ff', 'hex')), 'It cannot be decoded'],
    ['an endpoint IP', endpoint({ endpoint: { ips: { v4: ['10.0.0.256'] } } }), 'is not an IPv4 address'],
    ['an endpoint port', endpoint({ endpoint: { portOverrides: [{ port: 65_536 }] } }), 'The port 65536 is not'],
    ['a pod name', endpoint({ podName: 'a/b' }), 'The pod name \\"a/b\\" cannot be used'],
    ['an endpoint node', endpoint({ topology: { node: 'a b' } }), 'The node name \\"a b\\" cannot be used'],
    ['an endpoint namespace', endpoint({}, 'a/b|web|web-1|1f'), 'The namespace \\"a/b\\" cannot be used'],
    ['an endpoint source', endpoint({}, 'default|web|a/b|1f'), 'The source \\"a/b\\" cannot be used'],
    ['three parts', endpoint({}, 'default|web|1f'), 'Its path does not have four parts'],
    ['a node name', node('a/b'), 'The name \\"a/b\\" cannot be used'],
    ['a CIDR', cidr('kubernetes', '10.96.0.0'), 'is not a CIDR'],
  ])('with %s that cannot be used is taken without that item', (_, bad, reason) => {
    told([bad, service({ name: 'good' }, 'default|good||')], { reset })
    expect(store.entries().map(({ path }) => path)).toEqual(['default/good'])
    expect(store.nodes.size + store.serviceCidrs.size).toBe(0)
    expect(lines).toEqual([expect.stringContaining(reason)])
    expect(lines[0]).toContain('It is left out.')
    expect(skips.current).toBe(1)
  })
})

test('addresses get the one text that all others have: who owns one is decided by it', () => {
  told([
    service({
      ips: { clusterIps: { v6: ['FD00::0:1'] } },
      ipFilters: [{ targetIps: { v6: ['fd00:0::1'] }, sourceRanges: ['10.1.2.3/8'] }],
    }),
    endpoint({ endpoint: { ips: { v6: ['FD01:0::1'] } } }),
    node('node-1', '|node-1||', { addresses: ['FD02::1'], podCidrs: ['10.244.1.7/24'] }),
    cidr('kubernetes', '10.96.1.1/16'),
  ])
  const { service: stored, sources } = store.entry('default/web') ?? {}
  expect(stored?.ips?.clusterIps?.v6).toEqual(['fd00::1'])
  expect(stored?.ipFilters).toMatchObject([{ targetIps: { v6: ['fd00::1'] }, sourceRanges: ['10.0.0.0/8'] }])
  expect(sources?.get('web-1')?.[0]?.v6).toEqual(['fd01::1'])
  expect(store.nodes.get('node-1')).toMatchObject({ addresses: ['fd02::1'], podCidrs: ['10.244.1.0/24'] })
  expect(store.serviceCidrs.get('kubernetes')?.cidrs).toEqual(['10.96.0.0/16'])
})

test('a service that becomes unusable is gone, and is back when it is right again', () => {
  told([service()], { reset: true })
  told([service({ ports: [{ port: 99_999 }] })])
  expect(store.entry('default/web')).toBeUndefined()
  told([service()])
  expect(store.entry('default/web')?.service).toBeDefined()
  expect(skips.current).toBe(0)
})

test('what was wrong is forgotten with the object, also when it is gone after a reset', () => {
  const bad = service({ ports: [{ port: 99_999 }] })
  told([bad, node('a/b')], { reset: true })
  told([bad], { reset: true })
  expect(lines).toHaveLength(2)
  expect(skips.current).toBe(1)
  told([], { deletes: [ref(GLOBAL_SERVICE_INFOS, 'default|web||')] })
  expect(skips.current).toBe(0)
})
