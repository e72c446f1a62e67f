import { describe, expect, it } from 'vitest'
import { keptKeys } from '../../kubernetes/index.js'
import { readContent } from './read.js'

const read = (text: string, serviceProxyName = '') =>
  readContent('dir/state.yaml', text, {
    serviceProxyName,
    intern: (value) => value,
    keptOfServices: keptKeys(),
    keptOfNodes: keptKeys(),
  })

function mistake(text: string): string {
  try {
    read(text)
  } catch (error) {
    expect(error).toMatchObject({ name: 'KpngError', code: 'invalid' })
    return (error as Error).message
  }
  return ''
}

describe('an empty state is valid', () => {
  it.each(['', '\n\n', '# nothing yet\n', '---\n', '{}', '---\n---\n', 'services: []', 'services:\nnodes:\n'])(
    '%j',
    (text) => {
      expect(read(text)).toMatchObject({ services: [], endpoints: [], nodes: [], skipped: [] })
    },
  )
})

describe('mistakes have file, line and column', () => {
  it.each([
    [
      'services:\n- service:\n    name: "web\n',
      /^dir\/state\.yaml:\d+:\d+: This is not valid YAML: the quote is not closed/,
    ],
    [
      'services:\n- service:\n   name: a\n  endpoints: []\n    x: 1\n',
      /^dir\/state\.yaml:5:5: This is not valid YAML: bad indentation of a mapping entry/,
    ],
    ['a: 1\na: 2\n', /^dir\/state\.yaml:2:1: This is not valid YAML: duplicated mapping key/],
    ['services: *none', /^dir\/state\.yaml:1:\d+: This is not valid YAML: unidentified alias/],
    ['{"services": [}', /^dir\/state\.yaml:1:\d+: This is not valid YAML/],
  ])('not YAML: %j', (text, message) => expect(mistake(text)).toMatch(message))

  it.each([
    ['services: none', 'dir/state.yaml:1:11: services is "none"; a list was expected.'],
    [
      'services:\n- service:\n    name: web\n    ports: http\n',
      'dir/state.yaml:4:12: services[0].service.ports is "http"; a list was expected.',
    ],
    [
      'services:\n- service:\n    name: 7\n',
      'dir/state.yaml:3:11: services[0].service.name is 7; a text (numbers and true/false in quotes) was expected.',
    ],
    [
      'services:\n- service: { name: web, labels: { a: true } }\n',
      'dir/state.yaml:2:38: services[0].service.labels.a is true; a text (numbers and true/false in quotes) was expected.',
    ],
    [
      'services:\n- service: { name: web, ports: [ { port: "80" } ] }\n',
      'dir/state.yaml:2:42: services[0].service.ports[0].port is "80"; a number was expected.',
    ],
    [
      'services: &s\n- service:\n    name: web\n    mapip: |\n      text\n',
      'dir/state.yaml:4:12: services[0].service.mapip is "text\\n"; true or false was expected.',
    ],
    ['nodes: []\n---\nservices:\n- 7\n', 'dir/state.yaml:4:3: services[0] is 7; a map was expected.'],
    [
      '- a\n- b\n',
      'dir/state.yaml:1:1: The document is a list; a state file (with nodes: and services:) or a Kubernetes object (with kind:) was expected.',
    ],
    ['hello', 'dir/state.yaml:1:1: The document is "hello"; a state file'],
    ['colour: red', 'dir/state.yaml:1:1: The document is a map with colour; a state file'],
    // A document with the wrong top-level field would serve nothing at all.
    [
      'servces:\n- service: { name: web }\n',
      'dir/state.yaml:1:1: servces is not a field of a state file. Did you mean services?',
    ],
    [
      'nodes: []\nServices: []\n',
      'dir/state.yaml:2:1: Services is not a field of a state file. Did you mean services?',
    ],
    [
      'nodes: []\nextra: 1\n',
      'dir/state.yaml:2:1: extra is not a field of a state file. Known here: nodes, services, servicecidrs.',
    ],
    [
      'services:\n- service:\n    name: a\n    clusterIPs: 10.0.0.1\n',
      'dir/state.yaml:4:5: services[0].service.clusterIPs is not a field of a state file. Known here: namespace, name,',
    ],
    [
      'services:\n- service: { name: a, port: [] }\n',
      'dir/state.yaml:2:23: services[0].service.port is not a field of a state file. Did you mean ports?',
    ],
    [
      'services:\n- service: { name: a }\n  endpoint:\n  - podname: x\n',
      'dir/state.yaml:3:3: services[0].endpoint is not a field of a state file. Did you mean endpoints?',
    ],
    [
      '{"services": [{"service": {"nmae": "a"}}]}',
      'dir/state.yaml:1:28: services[0].service.nmae is not a field of a state file. Did you mean name?',
    ],
    ['kind: List\nitems: 7\n', 'dir/state.yaml:2:8: items is 7; a list was expected.'],
    [
      'kind: List\nitems:\n- kind: Service\n  spec:\n    ports: http\n',
      'dir/state.yaml:5:12: items[0].spec.ports is "http"; a list was expected.',
    ],
    [
      'kind: EndpointSlice\nendpoints:\n- addresses: 10.0.0.1\n',
      'dir/state.yaml:3:14: endpoints[0].addresses is "10.0.0.1"; a list was expected.',
    ],
  ])('wrong kind of value: %j', (text, message) => expect(mistake(text)).toContain(message))
})

it.each([
  ['lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'dir/state.yaml:1:1: The document is a list'],
  [
    'a field',
    `{"services":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    'dir/state.yaml:1:1: services[0] is a list; a map was',
  ],
  [
    'Lists',
    `${'{"kind":"List","items":['.repeat(10_000)}${']}'.repeat(10_000)}`,
    'dir/state.yaml:1:1: Lists are nested too deep.',
  ],
])('JSON that is nested too deep, in %s', (_, text, message) => expect(mistake(text)).toContain(message))

describe('anything that YAML can say', () => {
  it('anchors, block scalars, JSON', () => {
    const yaml =
      'services:\n- service: &s\n    name: web\n    annotations:\n      note: |\n        two\n        lines\n'
    expect(read(yaml).services).toMatchObject([{ name: 'web', annotations: { note: 'two\nlines\n' } }])
    expect(read('{"services":[{"service":{"name":"web"}}]}').services).toMatchObject([{ name: 'web' }])
  })

  it('a file may hold state and manifests', () => {
    const text =
      'services: [ { service: { name: a } } ]\n---\nkind: Service\nmetadata: { name: b }\nspec: { clusterIP: 10.0.0.1 }\n'
    expect(read(text).services.map(({ name }) => name)).toEqual(['a', 'b'])
  })
})

describe('long files', () => {
  const items = Array.from({ length: 25_000 }, (_, index) => `- service:\n    name: s${index}\n    type: ClusterIP\n`)
  const long = (at: number, item: string) => `services:\n${items.with(at, item).join('')}`

  it('anchors, block scalars and the like are read where they are', () => {
    const item = '- service: &x\n    name: odd\n    annotations:\n      a: |\n        two\n        lines\n'
    const { services } = read(long(20_000, item))
    expect(services).toHaveLength(items.length)
    expect(services[20_000]).toMatchObject({ name: 'odd', annotations: { a: 'two\nlines\n' } })
  })

  it('mistakes have their place', () => {
    expect(mistake(long(20_000, '- service:\n    name: "x\n'))).toMatch(
      /^dir\/state\.yaml:60003:11: This is not valid YAML: the quote is not closed/,
    )
    expect(mistake(long(20_000, '- service:\n    ports: x\n'))).toContain(
      'dir/state.yaml:60003:12: services[20000].service.ports is "x"',
    )
    expect(mistake(long(20_000, 'oops\n'))).toMatch(/^dir\/state\.yaml:6000\d:\d+: This is not valid YAML/)
  })

  it('CRLF is a line end as any other', () => {
    expect(read(long(5, '- service:\n    name: crlf\n').replaceAll('\n', '\r\n')).services[5]?.name).toBe('crlf')
  })
})
