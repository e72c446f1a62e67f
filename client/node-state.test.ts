import { create, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Changes } from './backend.js'
import { NodeItems } from './grpc/change-sets.js'
import { mergeChanges, NodeState, noChanges } from './node-state.js'

const { SERVICES, ENDPOINTS, NODES, SERVICE_CIDRS } = localv1.Set

// The view of a client over gRPC: items with paths become Services with their endpoints.

interface Ref {
  readonly set: localv1.Set
  readonly path: string
}
type Item = Ref & { readonly bytes: Uint8Array }

const service = (path: string, type = 'ClusterIP'): Item => {
  const [namespace, name] = path.split('/') as [string, string]
  const message = create(localv1.ServiceSchema, { namespace, name, type })
  return { set: SERVICES, path, bytes: toBinary(localv1.ServiceSchema, message) }
}
const endpoint = (path: string, ip: string): Item => {
  const message = create(localv1.EndpointSchema, { ips: { v4: [ip] } })
  return { set: ENDPOINTS, path, bytes: toBinary(localv1.EndpointSchema, message) }
}
const gone = (set: localv1.Set, path: string): Ref => ({ set, path })
const operations = (sets: Item[], deletes: Ref[] = [], reset = false) => ({
  reset,
  sets: sets.map(({ set, path, bytes }) => create(localv1.ValueSchema, { ref: { set, path }, bytes })),
  deletes: deletes.map((ref) => create(localv1.RefSchema, ref)),
  triggers: [],
  timeline: undefined,
})

/** A view that is told items. */
class View extends NodeState {
  readonly #items = new NodeItems(silentLog)

  tell(...told: Parameters<typeof operations>): Changes {
    return this.apply(this.#items.apply(operations(...told)))
  }
}

const ipsOf = (state: NodeState, path: string) => state.services.get(path)?.endpoints.map(({ ips }) => ips?.v4[0])

describe('a view', () => {
  test('has the endpoints of a service in the order of their paths', () => {
    const state = new View('n')
    state.tell([service('d/a'), endpoint('d/a/2', '10.0.0.2'), endpoint('d/a/1', '10.0.0.1')], [], true)
    expect(ipsOf(state, 'd/a')).toEqual(['10.0.0.1', '10.0.0.2'])
  })

  test('keeps that order through any changes, and gives out new lists', () => {
    const path = fc.integer({ min: 0, max: 30 }).map((number) => `d/a/${number}`)
    const step = fc.record({ set: fc.array(path), gone: fc.array(path) })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const state = new View('n')
        const expected = new Map<string, string>()
        state.tell([service('d/a')], [], true)
        for (const [number, { set, gone: deleted }] of steps.entries()) {
          const ip = `10.0.0.${number}`
          const before = state.services.get('d/a')?.endpoints
          const copy = [...(before ?? [])]
          for (const path of set) expected.set(path, ip)
          for (const path of deleted) expected.delete(path)
          state.tell(
            set.map((path) => endpoint(path, ip)),
            deleted.map((path) => gone(ENDPOINTS, path)),
          )
          expect(ipsOf(state, 'd/a')).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ip]) => ip))
          expect(before).toEqual(copy)
        }
      }),
    )
  })

  test('says what a step changed, before and after', () => {
    const state = new View('n')
    state.tell([service('d/a'), service('d/b'), endpoint('d/a/1', '10.0.0.1')], [], true)
    const changes = state.tell([endpoint('d/a/1', '10.0.0.9')], [gone(SERVICES, 'd/b')])
    expect([...changes.services.keys()]).toEqual(['d/a', 'd/b'])
    expect(changes.services.get('d/a')?.before?.endpoints[0]?.ips?.v4).toEqual(['10.0.0.1'])
    expect(changes.services.get('d/a')?.after?.endpoints[0]?.ips?.v4).toEqual(['10.0.0.9'])
    expect(changes.services.get('d/b')?.after).toBeUndefined()
    expect(changes.full).toBe(false)
  })

  test('does not change what it gave out before', () => {
    const state = new View('n')
    state.tell([service('d/a'), endpoint('d/a/1', '10.0.0.1')], [], true)
    const before = state.services.get('d/a')
    state.tell([endpoint('d/a/2', '10.0.0.2')])
    expect(before?.endpoints).toHaveLength(1)
  })

  test('after a reset, only what is different is a change', () => {
    const state = new View('n')
    state.tell([service('d/a'), service('d/b'), service('d/c'), endpoint('d/a/1', '10.0.0.1')], [], true)
    const changes = state.tell([service('d/a'), endpoint('d/a/1', '10.0.0.1'), service('d/b', 'NodePort')], [], true)
    expect([...changes.services.keys()].sort()).toEqual(['d/b', 'd/c'])
    expect([...state.services.keys()].sort()).toEqual(['d/a', 'd/b'])
  })

  test('keeps endpoints that come before their service', () => {
    const state = new View('n')
    expect(state.tell([endpoint('d/a/1', '10.0.0.1')]).services.size).toBe(0)
    state.tell([service('d/a')])
    expect(ipsOf(state, 'd/a')).toEqual(['10.0.0.1'])
  })

  test('knows the node and the service CIDRs', () => {
    const state = new View('n')
    const nodeBytes = toBinary(globalv1.NodeSchema, create(globalv1.NodeSchema, { name: 'n' }))
    const cidrBytes = toBinary(localv1.ServiceCIDRSchema, create(localv1.ServiceCIDRSchema, { name: 'k' }))
    const node: Item = { set: NODES, path: 'n', bytes: nodeBytes }
    const cidr: Item = { set: SERVICE_CIDRS, path: 'k', bytes: cidrBytes }
    expect(state.tell([node, cidr])).toMatchObject({ node: true, serviceCidrs: true })
    expect(state.tell([node, cidr], [], true)).toMatchObject({ node: false, serviceCidrs: false })
    expect(state.tell([], [gone(NODES, 'n'), gone(SERVICE_CIDRS, 'k')])).toMatchObject({
      node: true,
      serviceCidrs: true,
    })
    expect(state.node).toBeUndefined()
    expect(state.serviceCidrs.size).toBe(0)
  })
})

test('of the triggers of a service, the earliest stays', () => {
  const at = (service: string, unixMs: number): Changes => ({ ...noChanges, triggers: [{ service, unixMs }] })
  const all = [at('d/a', 2), at('d/b', 7), at('d/a', 1), at('d/a', 3)].reduce(mergeChanges)
  expect(all.triggers).toEqual([
    { service: 'd/a', unixMs: 1 },
    { service: 'd/b', unixMs: 7 },
  ])
})

test('two changes in a row are one, and none when the second takes the first back', () => {
  const state = new View('n')
  state.tell([service('d/a')], [], true)
  const first = state.tell([service('d/a', 'NodePort'), service('d/b')])
  const second = state.tell([service('d/b', 'NodePort'), service('d/a')])
  const merged = mergeChanges(first, second)
  expect([...merged.services.keys()]).toEqual(['d/b'])
  expect(merged.services.get('d/b')).toMatchObject({ before: undefined, after: { service: { type: 'NodePort' } } })
})
