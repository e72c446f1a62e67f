import { create } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Changes } from './backend.js'
import type { ChangeSet, DeleteItem, SetItem } from './change-set.js'
import { mergeChanges, NodeState, noChanges } from './node-state.js'

const { SERVICES, ENDPOINTS, NODES, SERVICE_CIDRS } = localv1.Set

const service = (path: string, type = 'ClusterIP'): SetItem => {
  const [namespace, name] = path.split('/') as [string, string]
  return { set: SERVICES, path, message: create(localv1.ServiceSchema, { namespace, name, type }) }
}
const endpoint = (path: string, ip: string): SetItem => ({
  set: ENDPOINTS,
  path,
  message: create(localv1.EndpointSchema, { ips: { v4: [ip] } }),
})
const gone = (set: localv1.Set, path: string): DeleteItem => ({ set, path })
const changeSet = (sets: SetItem[], deletes: DeleteItem[] = [], reset = false): ChangeSet => ({
  reset,
  sets,
  deletes,
  triggers: [],
})
const ipsOf = (state: NodeState, path: string) => state.services.get(path)?.endpoints.map(({ ips }) => ips?.v4[0])

describe('a view', () => {
  test('has the endpoints of a service in the order of their paths', () => {
    const state = new NodeState('n')
    state.apply(changeSet([service('d/a'), endpoint('d/a/2', '10.0.0.2'), endpoint('d/a/1', '10.0.0.1')], [], true))
    expect(ipsOf(state, 'd/a')).toEqual(['10.0.0.1', '10.0.0.2'])
  })

  test('keeps that order through any changes, and gives out new lists', () => {
    const path = fc.integer({ min: 0, max: 30 }).map((number) => `d/a/${number}`)
    const step = fc.record({ set: fc.array(path), gone: fc.array(path) })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const state = new NodeState('n')
        const expected = new Map<string, string>()
        state.apply(changeSet([service('d/a')], [], true))
        for (const [number, { set, gone: deleted }] of steps.entries()) {
          const ip = `10.0.0.${number}`
          const before = state.services.get('d/a')?.endpoints
          const copy = [...(before ?? [])]
          for (const path of set) expected.set(path, ip)
          for (const path of deleted) expected.delete(path)
          state.apply(
            changeSet(
              set.map((path) => endpoint(path, ip)),
              deleted.map((path) => gone(ENDPOINTS, path)),
            ),
          )
          expect(ipsOf(state, 'd/a')).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ip]) => ip))
          expect(before).toEqual(copy)
        }
      }),
    )
  })

  test('says what a step changed, before and after', () => {
    const state = new NodeState('n')
    state.apply(changeSet([service('d/a'), service('d/b'), endpoint('d/a/1', '10.0.0.1')], [], true))
    const changes = state.apply(changeSet([endpoint('d/a/1', '10.0.0.9')], [gone(SERVICES, 'd/b')]))
    expect([...changes.services.keys()]).toEqual(['d/a', 'd/b'])
    expect(changes.services.get('d/a')?.before?.endpoints[0]?.ips?.v4).toEqual(['10.0.0.1'])
    expect(changes.services.get('d/a')?.after?.endpoints[0]?.ips?.v4).toEqual(['10.0.0.9'])
    expect(changes.services.get('d/b')?.after).toBeUndefined()
    expect(changes.full).toBe(false)
  })

  test('does not change what it gave out before', () => {
    const state = new NodeState('n')
    state.apply(changeSet([service('d/a'), endpoint('d/a/1', '10.0.0.1')], [], true))
    const before = state.services.get('d/a')
    state.apply(changeSet([endpoint('d/a/2', '10.0.0.2')]))
    expect(before?.endpoints).toHaveLength(1)
  })

  test('after a reset, only what is different is a change', () => {
    const state = new NodeState('n')
    state.apply(changeSet([service('d/a'), service('d/b'), service('d/c'), endpoint('d/a/1', '10.0.0.1')], [], true))
    const changes = state.apply(
      changeSet([service('d/a'), endpoint('d/a/1', '10.0.0.1'), service('d/b', 'NodePort')], [], true),
    )
    expect([...changes.services.keys()].sort()).toEqual(['d/b', 'd/c'])
    expect([...state.services.keys()].sort()).toEqual(['d/a', 'd/b'])
  })

  test('keeps endpoints that come before their service', () => {
    const state = new NodeState('n')
    expect(state.apply(changeSet([endpoint('d/a/1', '10.0.0.1')])).services.size).toBe(0)
    state.apply(changeSet([service('d/a')]))
    expect(ipsOf(state, 'd/a')).toEqual(['10.0.0.1'])
  })

  test('knows the node and the service CIDRs', () => {
    const state = new NodeState('n')
    const node: SetItem = { set: NODES, path: 'n', message: create(globalv1.NodeSchema, { name: 'n' }) }
    const cidr: SetItem = { set: SERVICE_CIDRS, path: 'k', message: create(localv1.ServiceCIDRSchema, { name: 'k' }) }
    expect(state.apply(changeSet([node, cidr]))).toMatchObject({ node: true, serviceCidrs: true })
    expect(state.apply(changeSet([node, cidr], [], true))).toMatchObject({ node: false, serviceCidrs: false })
    expect(state.apply(changeSet([], [gone(NODES, 'n'), gone(SERVICE_CIDRS, 'k')]))).toMatchObject({
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
  const state = new NodeState('n')
  state.apply(changeSet([service('d/a')], [], true))
  const first = state.apply(changeSet([service('d/a', 'NodePort'), service('d/b')]))
  const second = state.apply(changeSet([service('d/b', 'NodePort'), service('d/a')]))
  const merged = mergeChanges(first, second)
  expect([...merged.services.keys()]).toEqual(['d/b'])
  expect(merged.services.get('d/b')).toMatchObject({ before: undefined, after: { service: { type: 'NodePort' } } })
})
