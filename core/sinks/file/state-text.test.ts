import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import { readContent } from '../../sources/file/read.js'
import { type ClusterState, conditionsOf, type EndpointPort, type EndpointRecord, Store } from '../../store/index.js'
import { StateText } from './state-text.js'

function storeOf(state: ClusterState): Store {
  const store = new Store()
  store.update((transaction) => transaction.replaceAll(state))
  return store
}

const render = (state: ClusterState) => new StateText().render(storeOf(state)).join('')
const read = (text: string) =>
  readContent('state.yaml', text, {
    serviceProxyName: '',
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  })
const nothing: ClusterState = { services: [], endpoints: [], nodes: [], serviceCidrs: [] }

const endpoint: EndpointRecord = {
  podName: 'web-1',
  hostname: '',
  v4: ['10.0.0.1'],
  v6: [],
  ports: [{ name: 'http', port: 8080 }],
  node: 'n1',
  zone: 'a',
  hints: undefined,
  conditions: conditionsOf(),
}

describe('layout', () => {
  const service = create(localv1.ServiceSchema, {
    namespace: 'default',
    name: 'web',
    type: 'ClusterIP',
    ips: { clusterIps: { v4: ['10.96.0.1'] }, externalIps: {} },
    ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080 }],
  })
  const state: ClusterState = {
    nodes: [create(globalv1.NodeSchema, { name: 'n1', topology: { node: 'n1', zone: 'a' } })],
    services: [service],
    endpoints: [{ namespace: 'default', name: 'web-abc', service: 'web', endpoints: [endpoint] }],
    serviceCidrs: [],
  }

  it("is Go kpng's, with nothing that its strict reader does not know", () => {
    expect(render(state)).toBe(`nodes:
- name: n1
  topology:
    node: n1
    zone: a
  labels: {}
  annotations: {}
services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    labels: {}
    annotations: {}
    ips:
      clusterips:
        v4:
        - 10.96.0.1
        v6: []
      externalips:
        v4: []
        v6: []
      loadbalancerips: null
      headless: false
    ipfilters: []
    mapip: false
    ports:
    - name: http
      protocol: 1
      port: 80
      nodeport: 0
      targetport: 8080
      targetportname: ""
    externaltraffictolocal: false
    sessionaffinity: null
    internaltraffictolocal: false
    healthchecknodeport: 0
  endpoints:
  - namespace: default
    sourcename: web-abc
    servicename: web
    podname: web-1
    endpoint:
      hostname: ""
      ips:
        v4:
        - 10.0.0.1
        v6: []
      portoverrides:
      - name: http
        port: 8080
    conditions:
      ready: true
    topology:
      node: n1
      zone: a
    hints: null
`)
  })

  it('an empty state', () => expect(render(nothing)).toBe('nodes: []\nservices: []\n'))

  it('a port of another protocol than its Service has is left out: it is not served', () => {
    const { TCP, UDP } = localv1.Protocol
    const web = create(localv1.ServiceSchema, {
      namespace: 'default',
      name: 'web',
      ports: [{ name: 'http', protocol: TCP, port: 80 }],
    })
    const withPorts = (...ports: EndpointPort[]) => {
      const endpoints = [{ namespace: 'default', name: 's', service: 'web', endpoints: [{ ...endpoint, ports }] }]
      return render({ ...nothing, services: [web], endpoints })
    }
    const http = { name: 'http', port: 8080 }
    expect(withPorts({ ...http, protocol: TCP }, { name: 'dns', port: 53, protocol: UDP })).toContain(
      'portoverrides:\n      - name: http\n        port: 8080\n      - name: dns\n        port: 53\n',
    )
    const none = withPorts({ ...http, protocol: UDP })
    expect(none).toContain('portoverrides: []')
    expect(none).toContain('noports: true')
  })

  it('is sorted by name; endpoints without a service are left out', () => {
    const named = (name: string) => create(localv1.ServiceSchema, { namespace: 'default', name })
    const endpoints = [{ namespace: 'default', name: 's', service: 'nobody', endpoints: [endpoint] }]
    const text = render({ ...nothing, services: [named('c'), named('a'), named('b')], endpoints })
    expect(text.match(/^ {4}name: .*$/gm)).toEqual(['    name: a', '    name: b', '    name: c'])
    expect(text).not.toContain('nobody')
  })
})

it('the text of a service that did not change is not made again', () => {
  const named = (name: string, type = 'ClusterIP') =>
    create(localv1.ServiceSchema, { namespace: 'default', name, type })
  const store = storeOf({ ...nothing, services: [named('a'), named('b')] })
  let looks = 0
  for (const path of ['default/a', 'default/b']) {
    const get = () => {
      looks++
      return 'ClusterIP'
    }
    Object.defineProperty(store.entry(path)?.service, 'type', { get })
  }
  const text = new StateText()
  text.render(store)
  expect(looks).toBe(2)
  store.update((transaction) => transaction.setService(named('b', 'NodePort')))
  looks = 0
  expect(text.render(store).join('')).toContain('NodePort')
  expect(looks).toBe(0)
})

describe('what is written reads back as the same state', () => {
  const name = fc.stringMatching(/^[a-z0-9]([-.a-z0-9]{0,8}[a-z0-9])?$/)
  const anyText = fc.string({ unit: 'binary', maxLength: 10 })
  const v4 = fc.ipV4().filter((ip) => !/(^|\.)0\d/.test(ip))
  const v6 = fc
    .tuple(fc.integer({ min: 1, max: 0xffff }), fc.integer({ min: 1, max: 0xffff }))
    .map(([a, b]) => `fd00:${a.toString(16)}::${b.toString(16)}`)
  const addresses = <T>(item: fc.Arbitrary<T>) => fc.uniqueArray(item, { maxLength: 3 })
  const ipSet = fc.record({ v4: addresses(v4), v6: addresses(v6) })
  const maybe = <T>(item: fc.Arbitrary<T>) => fc.option(item, { nil: undefined })
  const port = fc.integer({ min: 1, max: 65_535 })
  const portOrNone = fc.oneof(fc.constant(0), port)
  const labels = fc.dictionary(
    anyText.filter((key) => key !== '__proto__'),
    anyText,
    { maxKeys: 3, noNullPrototype: true },
  )
  const cidr = v4.map((ip) => `${ip}/32`)

  const service = fc
    .record({
      namespace: name,
      name,
      type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', ''),
      ips: maybe(
        fc.record({
          clusterIps: maybe(ipSet),
          externalIps: maybe(ipSet),
          headless: fc.boolean(),
          loadBalancerIps: maybe(ipSet),
          loadBalancerProxyIps: maybe(ipSet),
        }),
      ),
      mapIp: fc.boolean(),
      ports: fc
        .uniqueArray(
          fc.record({
            name: anyText,
            protocol: fc.constantFrom(1, 2, 3),
            port,
            nodePort: portOrNone,
            targetPort: portOrNone,
            targetPortName: anyText,
          }),
          { maxLength: 3, selector: ({ name }) => name },
        )
        .map((ports) => ports.filter((item, index) => ports.findIndex((other) => other.port === item.port) === index)),
      externalTrafficToLocal: fc.boolean(),
      internalTrafficToLocal: fc.boolean(),
      labels,
      annotations: labels,
      ipFilters: fc.array(fc.record({ targetIps: maybe(ipSet), sourceRanges: addresses(cidr) }), { maxLength: 2 }),
      sessionAffinity: fc.oneof(
        fc.constant({ case: undefined }),
        fc.record({
          case: fc.constant('clientIp' as const),
          value: fc
            .integer({ min: 1, max: 86_400 })
            .map((timeoutSeconds) => create(localv1.ClientIPAffinitySchema, { timeoutSeconds })),
        }),
      ),
      healthCheckNodePort: portOrNone,
    })
    .map((given) => create(localv1.ServiceSchema, given))

  const record: fc.Arbitrary<EndpointRecord> = fc.record({
    podName: fc.oneof(fc.constant(''), name),
    hostname: anyText,
    v4: fc.uniqueArray(v4, { minLength: 1, maxLength: 2 }),
    v6: addresses(v6),
    ports: fc.uniqueArray(fc.record({ name: anyText, port }), { maxLength: 2, selector: (item) => item.name }),
    node: anyText,
    zone: anyText,
    hints: maybe(fc.record({ zones: fc.array(anyText, { maxLength: 2 }), nodes: fc.array(anyText, { maxLength: 2 }) })),
    conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() }).map(conditionsOf),
  })

  const node = fc
    .record({
      name,
      labels,
      annotations: labels,
      topology: maybe(fc.record({ node: anyText, zone: anyText })),
      addresses: addresses(fc.oneof(v4, v6)),
      podCidrs: addresses(cidr),
      deleting: fc.boolean(),
    })
    .map((given) => create(globalv1.NodeSchema, given))

  const serviceCidr = fc
    .record({ name, cidrs: addresses(cidr) })
    .map((given) => create(localv1.ServiceCIDRSchema, given))
  const slices = fc.array(fc.uniqueArray(record, { minLength: 1, maxLength: 3, selector: (item) => item.v4.join() }), {
    maxLength: 2,
  })

  const state: fc.Arbitrary<ClusterState> = fc
    .record({
      items: fc.uniqueArray(fc.tuple(service, slices), {
        maxLength: 4,
        selector: ([item]) => `${item.namespace}/${item.name}`,
      }),
      nodes: fc.uniqueArray(node, { maxLength: 3, selector: (item) => item.name }),
      serviceCidrs: fc.uniqueArray(serviceCidr, { maxLength: 2, selector: (item) => item.name }),
    })
    .map(({ items, nodes, serviceCidrs }) => ({
      services: items.map(([item]) => item),
      endpoints: items.flatMap(([item, sources]) =>
        sources.map((endpoints, index) => ({
          namespace: item.namespace,
          name: `${item.name}-${index}`,
          service: item.name,
          endpoints,
        })),
      ),
      nodes,
      serviceCidrs,
    }))
    // Two services may lay claim to one source name here; a store never holds that.
    .filter(
      ({ endpoints }) => new Set(endpoints.map((item) => `${item.namespace}/${item.name}`)).size === endpoints.length,
    )

  it('for any state', () => {
    fc.assert(
      fc.property(state, (given) => {
        const written = storeOf(given)
        const text = new StateText().render(written).join('')
        const { skipped, ...content } = read(text)
        expect(skipped).toEqual([])
        const revision = written.revision
        // The store itself is the judge: writing back what was read changes nothing in it.
        written.update((transaction) => transaction.replaceAll(content))
        expect(written.revision).toBe(revision)
        expect(new StateText().render(storeOf(content)).join('')).toBe(text)
      }),
      { numRuns: 300 },
    )
  })
})
