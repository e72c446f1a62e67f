import { describe, expect, it } from 'vitest'
import { definitions } from '../schema/definitions.js'
import { jsonPatch } from './json-patch.js'
import { mergePatch } from './merge.js'
import { strategicPatch } from './strategic.js'

describe('JSON merge patch (RFC 7386)', () => {
  it.each([
    ['replaces a value', { a: 'b' }, { a: 'c' }, { a: 'c' }],
    ['adds a value', { a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    ['removes with null', { a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    ['replaces lists', { a: ['b'] }, { a: ['c', 'd'] }, { a: ['c', 'd'] }],
    ['merges objects', { a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    ['replaces a value by an object, without its nulls', { a: 'foo' }, { a: { b: { c: null } } }, { a: { b: {} } }],
  ])('%s', (_, target, patch, result) => {
    expect(mergePatch(target, patch)).toEqual(result)
  })
})

describe('JSON patch (RFC 6902)', () => {
  it.each([
    ['adds', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['adds into a list', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
    ['appends to a list', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    ['removes', { a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    ['replaces in a list', { a: [1, 2] }, [{ op: 'replace', path: '/a/1', value: 3 }], { a: [1, 3] }],
    ['moves', { a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    ['copies', { a: { x: 1 } }, [{ op: 'copy', from: '/a', path: '/b' }], { a: { x: 1 }, b: { x: 1 } }],
    [
      'escapes ~1 and ~0',
      { 'a/b': 1, 'c~d': 2 },
      [
        { op: 'remove', path: '/a~1b' },
        { op: 'remove', path: '/c~0d' },
      ],
      {},
    ],
    ['tests', { a: { b: [1] } }, [{ op: 'test', path: '/a', value: { b: [1] } }], { a: { b: [1] } }],
  ])('%s', (_, target, patch, result) => {
    expect(jsonPatch(target, patch)).toEqual(result)
  })

  it.each([
    ['a test that fails', [{ op: 'test', path: '/a', value: 2 }], 'testing path /a failed'],
    ['a missing path', [{ op: 'remove', path: '/x' }], 'missing path: "/x"'],
    ['an index out of range', [{ op: 'add', path: '/list/7', value: 1 }], 'out of range'],
    ['an unknown operation', [{ op: 'jump', path: '/a' }], 'Unexpected kind: jump'],
    ['something that is no list', { op: 'add' }, 'must be a list'],
  ])('refuses %s and leaves the target alone', (_, patch, message) => {
    const target = { a: 1, list: [] }
    expect(() => jsonPatch(target, patch)).toThrow(message)
    expect(target).toEqual({ a: 1, list: [] })
  })
})

describe('a JSON patch does not reach what all objects share', () => {
  const target = { metadata: { labels: { app: 'web' } }, list: [] }

  it.each([
    '__proto__',
    'constructor/prototype',
    'metadata/labels/__proto__',
    'list/constructor/prototype',
    'list/__proto__',
  ])('by /%s', (path) => {
    for (const patch of [
      [{ op: 'add', path: `/${path}/polluted`, value: 1 }],
      [{ op: 'add', path: `/${path}`, value: { polluted: 1 } }],
      [{ op: 'replace', path: `/${path}`, value: { polluted: 1 } }],
      [{ op: 'remove', path: `/${path}` }],
      [{ op: 'copy', from: `/${path}`, path: '/stolen' }],
      [{ op: 'move', from: '/metadata', path: `/${path}/polluted` }],
    ]) {
      expect(() => jsonPatch(target, patch)).toThrow('the server rejected our request')
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(target).toEqual({ metadata: { labels: { app: 'web' } }, list: [] })
  })

  it('but a label may be called "constructor" or "prototype"', () => {
    const add = (name: string) => ({ op: 'add', path: `/metadata/labels/${name}`, value: 'x' })
    expect(jsonPatch(target, [add('constructor'), add('prototype')])).toEqual({
      metadata: { labels: { app: 'web', constructor: 'x', prototype: 'x' } },
      list: [],
    })
  })
})

describe('strategic merge patch', () => {
  const patched = (type: string, target: unknown, patch: unknown) =>
    strategicPatch(target, patch, definitions.get(`io.k8s.api.core.v1.${type}`))
  const ports = [
    { name: 'http', port: 80, targetPort: 8080 },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ]

  it('merges service ports by port', () => {
    expect(patched('Service', { spec: { ports } }, { spec: { ports: [{ port: 80, targetPort: 9090 }] } })).toEqual({
      spec: { ports: [{ name: 'http', port: 80, targetPort: 9090 }, ports[1]] },
    })
  })
  it('adds and deletes list items', () => {
    const patch = {
      spec: {
        ports: [
          { port: 443, name: 'https' },
          { port: 53, $patch: 'delete' },
        ],
      },
    }
    expect(patched('Service', { spec: { ports } }, patch)).toEqual({
      spec: { ports: [ports[0], { port: 443, name: 'https' }] },
    })
  })
  it('replaces a list with $patch: replace', () => {
    const patch = { spec: { ports: [{ $patch: 'replace' }, { port: 1 }] } }
    expect(patched('Service', { spec: { ports } }, patch)).toEqual({ spec: { ports: [{ port: 1 }] } })
  })
  it('orders with $setElementOrder, unknown items staying behind their neighbour', () => {
    const target = { spec: { ports: [{ port: 1 }, { port: 9 }, { port: 2 }] } }
    const patch = { spec: { '$setElementOrder/ports': [{ port: 2 }, { port: 1 }] } }
    expect(patched('Service', target, patch)).toEqual({ spec: { ports: [{ port: 2 }, { port: 1 }, { port: 9 }] } })
  })
  it('merges containers by name and their ports by containerPort', () => {
    const target = { spec: { containers: [{ name: 'a', image: 'x', ports: [{ containerPort: 80 }] }] } }
    const patch = { spec: { containers: [{ name: 'a', image: 'y', ports: [{ containerPort: 81 }] }, { name: 'b' }] } }
    expect(patched('Pod', target, patch)).toEqual({
      spec: {
        containers: [{ name: 'a', image: 'y', ports: [{ containerPort: 80 }, { containerPort: 81 }] }, { name: 'b' }],
      },
    })
  })
  it('merges conditions by type, replaces taints and ingress as a whole', () => {
    const target = { status: { conditions: [{ type: 'A', status: 'True' }] }, spec: { taints: [{ key: 'a' }] } }
    const patch = { status: { conditions: [{ type: 'B', status: 'True' }] }, spec: { taints: [{ key: 'b' }] } }
    expect(patched('Node', target, patch)).toEqual({
      status: {
        conditions: [
          { type: 'A', status: 'True' },
          { type: 'B', status: 'True' },
        ],
      },
      spec: { taints: [{ key: 'b' }] },
    })
    const status = { status: { loadBalancer: { ingress: [{ ip: '127.0.0.1' }] } } }
    const other = { status: { loadBalancer: { ingress: [{ ip: '127.0.0.2' }] } } }
    expect(patched('Service', status, other)).toEqual(other)
  })
  it('unites finalizers, and deletes from them', () => {
    const target = { metadata: { finalizers: ['a', 'b'] } }
    expect(patched('Service', target, { metadata: { finalizers: ['c'] } })).toEqual({
      metadata: { finalizers: ['a', 'b', 'c'] },
    })
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } }
    expect(patched('Service', target, patch)).toEqual({ metadata: { finalizers: ['b'] } })
  })
  it('replaces maps with $patch: replace, keeps only $retainKeys', () => {
    const target = { spec: { selector: { a: '1', b: '2' }, type: 'ClusterIP' } }
    expect(patched('Service', target, { spec: { selector: { $patch: 'replace', c: '3' } } })).toEqual({
      spec: { selector: { c: '3' }, type: 'ClusterIP' },
    })
    expect(patched('Service', target, { spec: { $retainKeys: ['type'] } })).toEqual({ spec: { type: 'ClusterIP' } })
  })
})
