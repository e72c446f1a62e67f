import { describe, expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import { readContent } from './read.js'

const read = (text: string, serviceProxyName = '') =>
  readContent('m.yaml', text, {
    serviceProxyName,
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  })

const service = (name: string, more = '') =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: 10.0.0.1 }\n${more}`
const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-abc
  namespace: shop
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
ports:
- name: http
  port: 8080
endpoints:
- addresses: [ 10.244.0.1 ]
`

describe('kinds', () => {
  it('Service, EndpointSlice, Node and ServiceCIDR, in several documents', () => {
    const content = read(
      [
        service('web'),
        slice,
        'apiVersion: v1\nkind: Node\nmetadata: { name: n1 }\n',
        'apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: { name: kubernetes }\nspec: { cidrs: [ 10.96.0.0/12 ] }\n',
      ].join('---\n'),
    )
    expect(content.services).toMatchObject([{ namespace: 'default', name: 'web' }])
    expect(content.endpoints).toMatchObject([
      { namespace: 'shop', name: 'web-abc', service: 'web', endpoints: [{ v4: ['10.244.0.1'] }] },
    ])
    expect(content.nodes).toMatchObject([{ name: 'n1' }])
    expect(content.serviceCidrs).toMatchObject([{ name: 'kubernetes', cidrs: ['10.96.0.0/12'] }])
    expect(content.skipped).toEqual([])
  })

  it('lists, nested and typed ones included', () => {
    const list = (kind: string, items: unknown[]) => ({ kind, apiVersion: 'v1', items })
    const item = (name: string, kind?: string) => ({
      ...(kind && { kind }),
      metadata: { name },
      spec: { clusterIP: '10.0.0.1' },
    })
    const text = JSON.stringify(list('List', [item('a', 'Service'), list('ServiceList', [item('b'), item('c')])]))
    expect(read(text).services.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  it('other kinds are told once each and ignored', () => {
    const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n'
    const knative =
      'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: { name: x }\nspec: { clusterIP: 10.0.0.2 }\n'
    const beta = slice.replace('discovery.k8s.io/v1', 'discovery.k8s.io/v1beta1')
    const content = read([deployment, deployment, knative, beta, service('web')].join('---\n'))
    expect(content.services.map(({ name }) => name)).toEqual(['web'])
    expect(content.endpoints).toEqual([])
    expect(content.skipped.map(({ object }) => object)).toEqual([
      'objects of kind "apps/v1" "Deployment"',
      'objects of kind "serving.knative.dev/v1" "Service"',
      'objects of kind "discovery.k8s.io/v1beta1" "EndpointSlice"',
    ])
  })
})

describe('which services', () => {
  const forProxy = 'service.kubernetes.io/service-proxy-name'
  const text = [
    service('plain'),
    `kind: Service\nmetadata: { name: mine, labels: { ${forProxy}: mine } }\nspec: { clusterIP: None, externalIPs: [ 1.1.1.1 ] }\n`,
    'kind: Service\nmetadata: { name: headless }\nspec: { clusterIP: None }\n',
    'kind: Service\nmetadata: { name: far }\nspec: { type: ExternalName, externalName: example.com }\n',
  ].join('---\n')

  it.each([
    ['', ['plain']],
    ['mine', ['mine']],
    ['other', []],
  ])('proxy %j takes %j (checklist 1-3, 5)', (proxyName, names) => {
    const { services, skipped } = read(text, proxyName)
    expect(services.map(({ name }) => name)).toEqual(names)
    expect(skipped).toEqual([])
  })

  it('slices go with their Service; the default proxy leaves headless ones out', () => {
    const labelled = (label: string) =>
      slice.replace('    kubernetes.io/service-name: web\n', `    kubernetes.io/service-name: web\n    ${label}\n`)
    for (const text of [slice, labelled(`${forProxy}: mine`)]) {
      expect(read(text).endpoints).toHaveLength(1)
      expect(read(text, 'mine').endpoints).toHaveLength(1)
    }
    const headless = labelled('service.kubernetes.io/headless: ""')
    expect(read(headless).endpoints).toEqual([])
    expect(read(headless, 'mine').endpoints).toHaveLength(1)
  })

  it('one without a cluster IP: nobody here allocates it', () => {
    const { services, skipped } = read('kind: Service\nmetadata: { name: web }\nspec: { ports: [ { port: 80 } ] }\n')
    expect(services).toEqual([])
    expect(skipped).toEqual([
      { object: 'Service default/web', reason: expect.stringContaining('no API server to allocate one') },
    ])
  })
})

it('a bad port costs only itself', () => {
  const { services, skipped } = read(
    'kind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.0.0.1, ports: [ { name: a, port: 0 }, { name: b, port: 80 } ] }\n',
  )
  expect(services[0]?.ports.map(({ name }) => name)).toEqual(['b'])
  expect(skipped).toEqual([
    { object: 'Service default/web', reason: 'spec.ports[0].port is 0; a port is 1 to 65535. The port is left out.' },
  ])
})

it('passes on the labels and annotations that were asked for', () => {
  const text =
    'kind: Service\nmetadata: { name: web, labels: { a: b }, annotations: { c: d } }\nspec: { clusterIP: 10.0.0.1 }\n'
  expect(read(text).services).toMatchObject([{ labels: {}, annotations: {} }])
  const asked = {
    serviceProxyName: '',
    intern: (value: string) => value,
    keptOfServices: keptKeys(['a'], ['*']),
    keptOfNodes: keptKeys(),
  }
  expect(readContent('m.yaml', text, asked).services).toMatchObject([{ labels: { a: 'b' }, annotations: { c: 'd' } }])
})

it('the first object of a name stays', () => {
  const { endpoints, skipped } = read(`${slice}---\n${slice.replace('10.244.0.1', '10.244.0.2')}`)
  expect(endpoints.map(({ endpoints: [first] }) => first?.v4[0])).toEqual(['10.244.0.1'])
  expect(skipped).toMatchObject([{ object: 'EndpointSlice shop/web-abc' }])
})
