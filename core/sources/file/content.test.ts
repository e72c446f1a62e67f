import { expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import { mergeContents } from './content.js'
import { readContent } from './read.js'

const named = (file: string, text: string) => ({
  file,
  content: readContent(file, text, {
    serviceProxyName: '',
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  }),
})

it('puts files together; the first object of a name stays, and the endpoints of the other go with it', () => {
  const item = (name: string, ip: string, source: string) =>
    `- service: { name: ${name} }\n  endpoints: [ { sourcename: ${source}, endpoint: { ips: { v4: [ ${ip} ] } } } ]\n`
  const { services, endpoints, nodes, skipped } = mergeContents([
    named('a.yaml', `nodes: [ { name: n } ]\nservices:\n${item('web', '10.0.0.1', 's1')}`),
    named(
      'b.yaml',
      `nodes: [ { name: n } ]\nservices:\n${item('web', '10.0.0.2', 's2')}${item('db', '10.0.0.3', 's3')}`,
    ),
  ])
  expect(services.map(({ name }) => name)).toEqual(['web', 'db'])
  expect(endpoints.map(({ name }) => name)).toEqual(['s1', 's3'])
  expect(nodes).toHaveLength(1)
  expect(skipped).toEqual([
    { object: 'b.yaml: Service default/web', reason: 'a.yaml defines it already. This one is skipped.' },
    { object: 'b.yaml: Node n', reason: 'a.yaml defines it already. This one is skipped.' },
  ])
})

it('a slice may be in another file than its service', () => {
  const slice =
    'kind: EndpointSlice\nmetadata: { name: web-1, labels: { kubernetes.io/service-name: web } }\naddressType: IPv4\nendpoints: [ { addresses: [ 10.0.0.1 ] } ]\n'
  const service = 'kind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.0.0.1 }\n'
  const { endpoints, skipped } = mergeContents([named('a.yaml', service), named('b.yaml', slice)])
  expect(endpoints).toMatchObject([{ name: 'web-1', service: 'web' }])
  expect(skipped).toEqual([])
})

it('names the file of what was skipped', () => {
  const { skipped } = mergeContents([named('a.yaml', 'kind: Pod\n---\nservices: [ { service: { name: "a b" } } ]')])
  expect(skipped.map(({ object }) => object)).toEqual(['a.yaml: objects of kind "Pod"', 'a.yaml: services[0].service'])
})
