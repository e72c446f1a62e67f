import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import { conditionsOf } from '../../store/index.js'
import { readContent } from './read.js'

const read = (text: string) =>
  readContent('state.yaml', text, {
    serviceProxyName: '',
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  })
const reasons = (text: string) => read(text).skipped.map(({ object, reason }) => `${object}: ${reason}`)

// As Go kpng's own sample has it, fields of older versions included.
const sample = `
nodes:
- name: vm-001
  labels: {}
  annotations: {}
services:
- service:
    namespace: default
    name: mserver
    type: LoadBalancer
    labels: { app: m }
    annotations: {}
    ips:
      clusterips: { v4: [ 12.0.163.125 ], v6: [ "fd2a::2a" ] }
      externalips:
        v4: []
        v6: []
    mapip: false
    ports:
    - name: mconnect
      protocol: 1
      port: 5001
      nodeport: 31130
      targetport: 5001
      targetportname: ""
    externaltraffictolocal: false
  topologykeys: []
  endpoints:
  - hash: 16305222168211550639
    namespace: default
    sourcename: mserver
    servicename: mserver
    nodename: vm-001
    endpoint:
      hostname: ""
      ips:
        v4:
        - 11.0.1.2
        v6: [ "fd2b::1:2" ]
    conditions:
      ready: true
    topology:
      kubernetes.io/hostname: vm-001
  - endpoint: { ips: { v4: [ 11.0.1.3 ] } }
`

describe("Go kpng's sample", () => {
  const content = read(sample)

  it('is read without a complaint', () => expect(content.skipped).toEqual([]))

  it('has its service', () => {
    expect(content.services).toEqual([
      create(localv1.ServiceSchema, {
        namespace: 'default',
        name: 'mserver',
        type: 'LoadBalancer',
        labels: { app: 'm' },
        ips: { clusterIps: { v4: ['12.0.163.125'], v6: ['fd2a::2a'] }, externalIps: {} },
        ports: [{ name: 'mconnect', protocol: localv1.Protocol.TCP, port: 5001, nodePort: 31130, targetPort: 5001 }],
      }),
    ])
  })

  it('keeps both families of an endpoint in one record; missing conditions mean ready', () => {
    const common = {
      podName: '',
      hostname: '',
      ports: undefined,
      zone: '',
      hints: undefined,
      conditions: conditionsOf(),
    }
    expect(content.endpoints).toEqual([
      {
        namespace: 'default',
        name: 'mserver',
        service: 'mserver',
        endpoints: [
          { ...common, v4: ['11.0.1.2'], v6: ['fd2b::1:2'], node: 'vm-001' },
          { ...common, v4: ['11.0.1.3'], v6: [], node: '' },
        ],
      },
    ])
  })

  it('has its nodes', () => expect(content.nodes).toEqual([create(globalv1.NodeSchema, { name: 'vm-001' })]))
})

describe('what kpng adds', () => {
  it('reads all of it', () => {
    const { services, endpoints, nodes, serviceCidrs, skipped } = read(`
nodes:
- name: n1
  topology: { node: n1, zone: a }
  addresses: [ 192.168.0.1, "fd00::1" ]
  podcidrs: [ 10.1.0.0/16 ]
  deleting: true
services:
- service:
    name: web
    ips: { loadbalancerips: { v4: [1.1.1.1] }, loadbalancerproxyips: { v4: [2.2.2.2] }, headless: true }
    sessionaffinity: { clientip: { timeoutseconds: 60 } }
    ipfilters: [ { targetips: null, sourceranges: [ 10.0.0.0/8 ] } ]
    internaltraffictolocal: true
    healthchecknodeport: 32000
    ports: [ { protocol: udp, port: 53 }, { protocol: SCTP, port: 54, targetport: 0 } ]
  endpoints:
  - sourcename: web-abc
    podname: web-1
    endpoint: { ips: { v4: [10.0.0.1] }, portoverrides: [ { name: http, port: 8080 } ] }
    conditions: { ready: false, serving: true, terminating: true }
    topology: { node: n1, zone: a }
    hints: { zones: [a], nodes: [n1] }
servicecidrs:
- name: kubernetes
  cidrs: [ 10.96.0.0/12 ]
`)
    expect(skipped).toEqual([])
    expect(nodes).toEqual([
      create(globalv1.NodeSchema, {
        name: 'n1',
        topology: { node: 'n1', zone: 'a' },
        addresses: ['192.168.0.1', 'fd00::1'],
        podCidrs: ['10.1.0.0/16'],
        deleting: true,
      }),
    ])
    expect(services).toEqual([
      create(localv1.ServiceSchema, {
        namespace: 'default',
        name: 'web',
        type: 'ClusterIP',
        ips: { loadBalancerIps: { v4: ['1.1.1.1'] }, loadBalancerProxyIps: { v4: ['2.2.2.2'] }, headless: true },
        sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 60 } },
        ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }],
        internalTrafficToLocal: true,
        healthCheckNodePort: 32000,
        ports: [
          { protocol: localv1.Protocol.UDP, port: 53, targetPort: 53 },
          { protocol: localv1.Protocol.SCTP, port: 54, targetPort: 0 },
        ],
      }),
    ])
    expect(endpoints).toMatchObject([
      {
        name: 'web-abc',
        service: 'web',
        endpoints: [
          {
            podName: 'web-1',
            ports: [{ name: 'http', port: 8080 }],
            node: 'n1',
            zone: 'a',
            hints: { zones: ['a'], nodes: ['n1'] },
            conditions: { ready: false, serving: true, terminating: true },
          },
        ],
      },
    ])
    expect(serviceCidrs).toEqual([create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/12'] })])
  })
})

describe('bad items cost only themselves', () => {
  const service = (fields: string, endpoints = '[]') =>
    `services:\n- service: { name: web, ${fields} }\n  endpoints: ${endpoints}\n`
  const oneGood = '{ endpoint: { ips: { v4: [ 10.0.0.9 ] } } }'

  it.each([
    [
      'a bad IP',
      service('ips: { clusterips: { v4: [ 010.0.0.1, 10.0.0.1 ] } }'),
      'Service default/web: ips.clusterips has "010.0.0.1"',
    ],
    ['port 0', service('ports: [ { port: 0, protocol: 1 }, { port: 80 } ]'), 'Service default/web: ports[0].port is 0'],
    [
      'an unknown protocol',
      service('ports: [ { port: 81, protocol: 7 }, { port: 80 } ]'),
      'Service default/web: ports[0].protocol is 7',
    ],
    [
      'an unknown protocol name',
      service('ports: [ { port: 81, protocol: ICMP }, { port: 80 } ]'),
      'ports[0].protocol is "ICMP"',
    ],
    [
      'a port twice',
      service('ports: [ { port: 80 }, { port: 80 } ]'),
      'ports[1] has the name, or the protocol and number',
    ],
    ['a bad range', service('ipfilters: [ { sourceranges: [ x ] } ]'), 'ipfilters[0].sourceranges has "x"'],
    [
      'an endpoint without an address',
      service('type: x', `[ { podname: p }, ${oneGood} ]`),
      'endpoints[0] has no usable IP address',
    ],
    [
      'an endpoint twice',
      service('type: x', `[ ${oneGood}, ${oneGood} ]`),
      'endpoints[1] has the addresses of an earlier endpoint',
    ],
    [
      'a bad source name',
      service('type: x', `[ { sourcename: a/b, endpoint: { ips: { v4: [ 10.0.0.1 ] } } }, ${oneGood} ]`),
      'endpoints[0].sourcename is "a/b"',
    ],
    [
      'an override without a number',
      service('type: x', '[ { endpoint: { ips: { v4: [ 10.0.0.9 ] }, portoverrides: [ { name: x } ] } } ]'),
      'portoverrides[0].port is undefined',
    ],
  ])('%s', (_, text, reason) => {
    expect(reasons(text)).toEqual([expect.stringContaining(reason)])
    const { services, endpoints } = read(text)
    expect(services.map(({ name }) => name)).toEqual(['web'])
    expect(services.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual(
      text.includes('port: 80') ? [80] : [],
    )
    expect(endpoints.flatMap((source) => source.endpoints.map(({ v4 }) => v4[0]))).toEqual(
      text.includes('10.0.0.9') ? ['10.0.0.9'] : [],
    )
  })

  it.each([
    [
      'an odd service name',
      'services: [ { service: { name: "a b" } }, { service: { name: web } } ]',
      'services[0].service: Its name is "a b"',
    ],
    [
      'no service',
      'services: [ { endpoints: [] }, { service: { name: web } } ]',
      'services[0].service: Its name is ""',
    ],
    [
      'an odd namespace',
      'services: [ { service: { name: a, namespace: x|y } }, { service: { name: web } } ]',
      'namespace: Its name is "x|y"',
    ],
    [
      'a service twice',
      'services: [ { service: { name: web } }, { service: { name: web, type: NodePort } } ]',
      'Service default/web: It is defined twice',
    ],
  ])('%s', (_, text, reason) => {
    expect(reasons(text)).toEqual([expect.stringContaining(reason)])
    expect(read(text).services).toMatchObject([{ name: 'web', type: 'ClusterIP' }])
  })

  describe('a bad source range allows nobody (checklist 45)', () => {
    const filters = (targets: string, ranges: string) =>
      read(
        service(
          `ips: { loadbalancerips: { v4: [ 1.1.1.1 ], v6: [ "fd00::1" ] } }, ipfilters: [ { targetips: ${targets}, sourceranges: ${ranges} } ]`,
        ),
      ).services.flatMap(({ ipFilters }) =>
        ipFilters.map(({ targetIps, sourceRanges }) => [targetIps?.v4, targetIps?.v6, sourceRanges]),
      )
    const shut = [
      [['1.1.1.1'], [], []],
      [[], ['fd00::1'], []],
    ]

    it.each([
      ['alone: both families of the load-balancer IPs are shut', 'null', '[ x ]', shut],
      ['alone, with targets', '{ v4: [ 1.1.1.1 ], v6: [ "fd00::1" ] }', '[ x ]', shut],
      [
        'beside a good one: the other family does not stay open',
        'null',
        '[ 10.0.0.0/8, x ]',
        [
          [['1.1.1.1'], [], ['10.0.0.0/8']],
          [[], ['fd00::1'], []],
        ],
      ],
      ['with a target of one family', '{ v4: [ 2.2.2.2 ] }', '[ x ]', [[['2.2.2.2'], [], []]]],
    ])('%s', (_, targets, ranges, expected) => expect(filters(targets, ranges)).toEqual(expected))
  })

  it('a node twice, a node without a name, bad node addresses', () => {
    const text = 'nodes: [ { name: n, addresses: [ x ], podcidrs: [ y ] }, { name: n, deleting: true }, {} ]'
    expect(reasons(text)).toHaveLength(4)
    expect(read(text).nodes).toEqual([create(globalv1.NodeSchema, { name: 'n' })])
  })
})

it.each([
  ['', true, true, false],
  ['conditions: {}', true, true, false],
  ['conditions: { ready: true }', true, true, false],
  ['conditions: { ready: false }', false, false, false],
  ['conditions: { ready: false, serving: true, terminating: true }', false, true, true],
  ['conditions: { ready: true, serving: false }', true, false, false],
])('conditions: %j', (text, ready, serving, terminating) => {
  const endpoint = `{ endpoint: { ips: { v4: [ 10.0.0.1 ] } }${text && `, ${text}`} }`
  const [source] = read(`services: [ { service: { name: web }, endpoints: [ ${endpoint} ] } ]`).endpoints
  expect(source?.endpoints[0]?.conditions).toEqual({ ready, serving, terminating })
})

describe('sources', () => {
  it('two services with one source name both keep their endpoints', () => {
    const item = (name: string, ip: string) =>
      `- service: { name: ${name} }\n  endpoints: [ { sourcename: shared, endpoint: { ips: { v4: [ ${ip} ] } } } ]\n`
    const { endpoints, skipped } = read(`services:\n${item('a', '10.0.0.1')}${item('b', '10.0.0.2')}`)
    expect(skipped).toEqual([])
    expect(endpoints.map(({ service, endpoints: [first] }) => [service, first?.v4[0]])).toEqual([
      ['a', '10.0.0.1'],
      ['b', '10.0.0.2'],
    ])
    expect(new Set(endpoints.map(({ name }) => name)).size).toBe(2)
  })

  it('records share ports and hints', () => {
    const one = (ip: string) =>
      `{ endpoint: { ips: { v4: [${ip}] }, portoverrides: [ { name: a, port: 1 } ] }, hints: { zones: [z] } }`
    const [source] = read(
      `services: [ { service: { name: web }, endpoints: [ ${one('10.0.0.1')}, ${one('10.0.0.2')} ] } ]`,
    ).endpoints
    const [a, b] = source?.endpoints ?? []
    expect(a?.hints).toBeDefined()
    expect(a?.hints).toBe(b?.hints)
    expect(a?.ports).toBe(b?.ports)
  })
})
