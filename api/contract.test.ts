import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { globalPath, globalv1, localv1, parseGlobalPath, serviceOfEndpointPath } from './index.js'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** Every field's number by its name in the Go contract; snake_case here, so that `ClusterIPs` and `cluster_ips` meet. */
const numbers = (message: { fields: readonly { name: string; number: number }[] }) =>
  Object.fromEntries(message.fields.map(({ name, number }) => [name.replaceAll('_', ''), number]))

describe('nothing of the Go contract is renumbered', () => {
  test.each([
    [localv1.WatchReqSchema, { nodename: 1 }],
    [localv1.OpItemSchema, { sync: 1, set: 2, delete: 3, reset: 4 }],
    [localv1.RefSchema, { set: 1, path: 2 }],
    [localv1.ValueSchema, { ref: 1, bytes: 2 }],
    [
      localv1.ServiceSchema,
      {
        namespace: 1,
        name: 2,
        type: 3,
        ips: 4,
        mapip: 5,
        ports: 6,
        externaltraffictolocal: 7,
        labels: 8,
        annotations: 9,
        ipfilters: 10,
        clientip: 11,
        internaltraffictolocal: 12,
        healthchecknodeport: 13,
      },
    ],
    [localv1.ServiceIPsSchema, { clusterips: 1, externalips: 2, headless: 3, loadbalancerips: 4 }],
    [localv1.IPSetSchema, { v4: 1, v6: 2 }],
    [localv1.IPFilterSchema, { targetips: 1, sourceranges: 2 }],
    [localv1.EndpointSchema, { hostname: 1, ips: 2, local: 3, portoverrides: 4, scopes: 5 }],
    [localv1.EndpointScopesSchema, { internal: 1, external: 2 }],
    [localv1.PortNameSchema, { name: 1, port: 2 }],
    [localv1.PortMappingSchema, { name: 1, protocol: 2, port: 3, nodeport: 4, targetport: 5, targetportname: 6 }],
    [localv1.ClientIPAffinitySchema, { timeoutseconds: 1 }],
    [globalv1.ServiceInfoSchema, { hash: 1, service: 2 }],
    [
      globalv1.EndpointInfoSchema,
      {
        hash: 1,
        namespace: 2,
        sourcename: 3,
        servicename: 4,
        endpoint: 6,
        conditions: 7,
        podname: 8,
        topology: 9,
        hints: 10,
      },
    ],
    [globalv1.EndpointConditionsSchema, { ready: 1 }],
    [globalv1.TopologyInfoSchema, { node: 1, zone: 2 }],
    [globalv1.TopologyHintsSchema, { zones: 1 }],
    [globalv1.NodeInfoSchema, { hash: 1, node: 2 }],
    [globalv1.NodeSchema, { name: 1, labels: 2, annotations: 3, topology: 4 }],
  ])('$typeName', (schema, expected) => {
    expect(numbers(schema)).toMatchObject(expected)
  })

  test('sets and protocols', () => {
    const { SERVICES, ENDPOINTS, GLOBAL_SERVICE_INFOS, GLOBAL_ENDPOINT_INFOS, GLOBAL_NODE_INFOS } = localv1.Set
    expect([SERVICES, ENDPOINTS, GLOBAL_SERVICE_INFOS, GLOBAL_ENDPOINT_INFOS, GLOBAL_NODE_INFOS]).toEqual([
      1, 2, 10, 11, 12,
    ])
    expect([localv1.Protocol.TCP, localv1.Protocol.UDP, localv1.Protocol.SCTP]).toEqual([1, 2, 3])
  })

  test('services and methods', () => {
    expect(`${localv1.Sets.typeName}/${localv1.Sets.method.watch.name}`).toBe('localv1.Sets/Watch')
    expect(`${globalv1.Sets.typeName}/${globalv1.Sets.method.watch.name}`).toBe('globalv1.Sets/Watch')
  })

  test('the bytes of a request are those of Go', () => {
    expect(hex(toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName: 'vm-001' })))).toBe(
      '0a06766d2d303031',
    )
    expect(hex(toBinary(globalv1.GlobalWatchReqSchema, create(globalv1.GlobalWatchReqSchema)))).toBe('')
  })
})

describe('paths', () => {
  test('of endpoints lead to their service', () => {
    expect(serviceOfEndpointPath('default/web/web-1')).toBe('default/web')
    expect(serviceOfEndpointPath('default/web/web-1:v6')).toBe('default/web')
    expect(serviceOfEndpointPath('default/web')).toBeUndefined()
    expect(serviceOfEndpointPath('web')).toBeUndefined()
  })

  test('of the global stream have four parts', () => {
    expect(globalPath({ name: 'node-a' })).toBe('|node-a||')
    expect(globalPath({ namespace: 'default', name: 'web' })).toBe('default|web||')
    expect(globalPath({ namespace: 'default', name: 'web', source: 'web-x', key: 'ff' })).toBe('default|web|web-x|ff')
    expect(parseGlobalPath('default||web-x|ff')).toEqual({ namespace: 'default', name: '', source: 'web-x', key: 'ff' })
    expect(parseGlobalPath('default/web')).toBeUndefined()
  })
})
