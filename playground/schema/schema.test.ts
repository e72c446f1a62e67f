import { describe, expect, it } from 'vitest'
import { Kinds } from '../kinds/index.js'
import { isObject } from '../objects/types.js'
import { ServiceNetwork } from '../services/network.js'
import { Store } from '../storage/store.js'
import { message, text, truth } from '../testing/protobuf.js'
import { definitions, resolve } from './definitions.js'
import { openApiV3, openApiV3Index } from './openapi.js'
import { decodeProtobuf, isProtobuf } from './protobuf-decode.js'
import { checkSchema } from './strict.js'

const kinds = new Kinds(new ServiceNetwork(new Store({ logSize: 1 }), { first: 1, last: 2 }))
const typeCalled = (name: string) => {
  const definition = definitions.get(name)
  if (!definition) throw new Error(`no type ${name}`)
  return definition
}
const serviceType = typeCalled('io.k8s.api.core.v1.Service')

describe('the types', () => {
  it('refer only to types that exist; only "object" is open', () => {
    const open = [...definitions.values()].flatMap((owner) =>
      [...owner.fields]
        .filter(([, field]) => field.type !== 'object' && resolve(owner, field).kind === 'open')
        .map(([name]) => `${owner.name}.${name}`),
    )
    expect(open).toEqual([])
  })
  it('exist for every kind', () => {
    expect(kinds.all.filter(({ type }) => !definitions.has(type))).toEqual([])
  })
  it('have unique protobuf numbers', () => {
    for (const { name, fields } of definitions.values()) {
      const numbers = [...fields.values()].flatMap(({ number }) => number ?? [])
      expect(new Set(numbers).size, name).toBe(numbers.length)
    }
  })
})

describe('strict decoding', () => {
  it.each([
    ['an unknown field', { spec: { selectr: {} } }, ['unknown field "spec.selectr"'], []],
    ['one in a list', { spec: { ports: [{ port: 1, prt: 2 }] } }, ['unknown field "spec.ports[0].prt"'], []],
    [
      'a text for a number',
      { spec: { ports: [{ port: '80' }] } },
      [],
      ['json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32'],
    ],
    [
      'a list for an object',
      { spec: [] },
      [],
      ['json: cannot unmarshal array into Go struct field Service.spec of type v1.ServiceSpec'],
    ],
    [
      'a number for a label',
      { metadata: { labels: { a: 1 } } },
      [],
      ['json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels.a of type string'],
    ],
    ['null, which is absent', { spec: null }, [], []],
    [
      'a number or a name',
      {
        spec: {
          ports: [
            { port: 1, targetPort: 'http' },
            { port: 2, targetPort: 3 },
          ],
        },
      },
      [],
      [],
    ],
  ])('%s', (_, object, unknown, mistyped) => {
    expect(checkSchema(object as never, serviceType)).toEqual({ unknown, mistyped })
  })
})

describe('OpenAPI', () => {
  it('v3 has a document per group version, without dangling references', () => {
    const paths = Object.keys(openApiV3Index(kinds).paths as object)
    expect(paths).toEqual([
      'api/v1',
      'apis/apps/v1',
      'apis/discovery.k8s.io/v1',
      'apis/events.k8s.io/v1',
      'apis/networking.k8s.io/v1',
    ])
    const document = openApiV3(kinds, '', 'v1')
    const { schemas } = (document?.components ?? {}) as { schemas: object }
    for (const [, name] of JSON.stringify(document).matchAll(/#\/components\/schemas\/([\w.]+)/g))
      expect(schemas).toHaveProperty([name ?? ''])
  })
  it('tells strategic merge keys', () => {
    const { schemas } = (openApiV3(kinds, '', 'v1')?.components ?? {}) as { schemas: Record<string, unknown> }
    expect(schemas['io.k8s.api.core.v1.ServiceSpec']).toMatchObject({
      properties: {
        ports: { 'x-kubernetes-patch-merge-key': 'port', 'x-kubernetes-list-map-keys': ['port', 'protocol'] },
      },
    })
  })
})

describe('protobuf bodies', () => {
  it('become the objects that JSON would have given', () => {
    const port = message(
      1,
      text(1, 'http'),
      text(2, 'TCP'),
      Buffer.from([0x18, 80]),
      message(4, Buffer.from([0x08, 1]), text(3, 'web')),
      Buffer.from([0x28, 0]),
    )
    const meta = message(1, text(1, 'web'), text(2, ''), message(11, text(1, 'app'), text(2, 'x')))
    const raw = Buffer.concat([meta, message(2, port, text(4, 'NodePort'), truth(20))])
    const body = Buffer.concat([Buffer.from('k8s\0'), message(1, text(1, 'v1'), text(2, 'Service')), message(2, raw)])
    expect(isProtobuf(body)).toBe(true)
    const object = decodeProtobuf(body, serviceType)
    expect(object).toMatchObject({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', labels: { app: 'x' } },
      spec: {
        type: 'NodePort',
        ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 'web' }],
        allocateLoadBalancerNodePorts: true,
      },
    })
    // Go writes empty strings and zeros that nobody has set.
    expect(isObject(object.metadata) && 'generateName' in object.metadata).toBe(false)
  })
  it('that end too early are refused', () => {
    expect(() => decodeProtobuf(Buffer.from('k8s\0\x0a'), serviceType)).toThrow('ends too early')
  })
})
