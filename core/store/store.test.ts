import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { describe, expect, test, vi } from 'vitest'
import { countingLooks, endpoint, node, service, syncedStore } from '../testing/objects.js'
import type { Bookmark } from './history.js'
import { Store } from './store.js'

const slice = (name: string, service: string, ...ips: string[]) => ({
  namespace: 'default',
  name,
  service,
  endpoints: ips.map((ip) => endpoint(ip)),
})

describe('revisions', () => {
  test('an update that changes something makes one revision, however much it writes', () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setService(service('a'))
      tx.setService(service('b'))
      tx.setEndpoints(slice('a-1', 'a', '10.0.0.1'))
      tx.setNode(node('node-a'))
    })
    expect(store.revision).toBe(1)
  })

  test('writing the same again makes none', () => {
    const store = syncedStore()
    const write = () =>
      store.update((tx) => {
        tx.setService(service('a'))
        tx.setEndpoints(slice('a-1', 'a', '10.0.0.1', '10.0.0.2'))
        tx.setNode(node('node-a', 'zone-a'))
        tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }))
      })
    write()
    write()
    write()
    expect(store.revision).toBe(1)
  })

  test.each([
    ['with other ports', endpoint('10.0.0.1', { ports: [{ name: 'http', port: 81 }] })],
    ['of another pod', endpoint('10.0.0.1', { podName: 'web-1' })],
    ['twice the same', endpoint('10.0.0.1')],
  ])('writing a source again that has an address twice, %s, makes none', (_, second) => {
    const store = syncedStore()
    const write = () =>
      store.update((tx) => tx.setEndpoints({ ...slice('a-1', 'a'), endpoints: [endpoint('10.0.0.1'), { ...second }] }))
    write()
    write()
    expect(store.revision).toBe(1)
  })

  test('deleting what is not there makes none', () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.deleteService('default', 'a')
      tx.deleteEndpoints('default', 'a-1')
      tx.deleteNode('node-a')
      tx.deleteServiceCidr('kubernetes')
    })
    expect(store.revision).toBe(0)
  })

  test('changing a thing and changing it back in one update makes none', () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setService(service('a'))
      tx.setEndpoints(slice('a-1', 'a', '10.0.0.1'))
      tx.setNode(node('node-a'))
    })
    store.update((tx) => {
      tx.setService(service('a', { type: 'NodePort' }))
      tx.setService(service('a'))
      tx.deleteEndpoints('default', 'a-1')
      tx.setEndpoints(slice('a-1', 'a', '10.0.0.1'))
      tx.deleteNode('node-a')
      tx.setNode(node('node-a'))
      tx.setService(service('b'))
      tx.deleteService('default', 'b')
    })
    expect(store.revision).toBe(1)
  })

  test.each([
    ['an address', endpoint('10.0.0.2')],
    ['a port', endpoint('10.0.0.1', { ports: [{ name: 'http', port: 81 }] })],
    ['a condition', endpoint('10.0.0.1', { ready: false })],
    ['zone hints only', endpoint('10.0.0.1', { zones: ['zone-a'] })],
    ['node hints only', endpoint('10.0.0.1', { nodes: ['node-a'] })],
    ['the pod only', endpoint('10.0.0.1', { podName: 'web-1' })],
    ['the node only', endpoint('10.0.0.1', { node: 'node-a' })],
    ['the zone only', endpoint('10.0.0.1', { zone: 'zone-a' })],
    ['the host name only', endpoint('10.0.0.1', { hostname: 'web' })],
  ])('a change of %s makes one', (_, changed) => {
    const store = syncedStore()
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1')))
    store.update((tx) => tx.setEndpoints({ ...slice('a-1', 'a'), endpoints: [changed] }))
    expect(store.revision).toBe(2)
  })
})

describe('atomicity', () => {
  test('an update that throws changes nothing', () => {
    const store = syncedStore()
    const fail = () =>
      store.update((tx) => {
        tx.setService(service('a'))
        tx.setSynced('services')
        throw new Error('no')
      })
    expect(fail).toThrow('no')
    expect(store.revision).toBe(0)
    expect(store.entries()).toEqual([])
  })

  test('it is announced once for all updates made in one go, after them', async () => {
    const store = syncedStore()
    await Promise.resolve()
    const listener = vi.fn()
    store.onChange(listener)
    store.update((tx) => tx.setService(service('a')))
    store.update((tx) => tx.setService(service('b')))
    expect(listener).not.toHaveBeenCalled()
    await Promise.resolve()
    expect(listener).toHaveBeenCalledTimes(1)
  })
})

describe('sources of endpoints', () => {
  test('unchanged endpoints of a changed source are the same objects', () => {
    const store = syncedStore()
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1', '10.0.0.2')))
    const before = store.entry('default/a')?.sources.get('a-1')
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.3', '10.0.0.2')))
    const after = store.entry('default/a')?.sources.get('a-1')
    expect(after?.[1]).toBe(before?.[1])
    expect(after?.[0]).not.toBe(before?.[0])
  })

  test('the order of a source may change, and its endpoints are the same objects still', () => {
    const store = syncedStore()
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1', '10.0.0.2')))
    const before = store.entry('default/a')?.sources.get('a-1')
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.2', '10.0.0.1')))
    expect(store.entry('default/a')?.sources.get('a-1')?.[0]).toBe(before?.[1])
  })

  test('a change of one source does not look at the endpoints of the others', () => {
    const store = syncedStore()
    const { looked, endpoint: watched } = countingLooks(endpoint('10.0.0.1'))
    store.update((tx) => tx.setEndpoints({ ...slice('a-1', 'a'), endpoints: [watched] }))
    const before = looked()
    store.update((tx) => tx.setEndpoints(slice('a-2', 'a', '10.0.0.2')))
    store.update((tx) => tx.setEndpoints(slice('a-2', 'a', '10.0.0.3')))
    expect(looked() - before).toBe(0)
  })

  test('a source that moves to another service leaves the first', () => {
    const store = syncedStore()
    store.update((tx) => tx.setEndpoints(slice('s', 'a', '10.0.0.1')))
    store.update((tx) => tx.setEndpoints(slice('s', 'b', '10.0.0.1')))
    expect(store.entry('default/a')).toBeUndefined()
    expect(store.entry('default/b')?.sources.size).toBe(1)
    store.update((tx) => tx.deleteEndpoints('default', 's'))
    expect(store.entry('default/b')).toBeUndefined()
  })

  test('endpoints known before their service wait for it', () => {
    const store = syncedStore()
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1')))
    expect(store.entry('default/a')?.service).toBeUndefined()
    store.update((tx) => tx.setService(service('a')))
    expect(store.entry('default/a')?.sources.size).toBe(1)
  })
})

test('replaceAll writes only the differences and deletes the rest', () => {
  const store = syncedStore()
  const state = {
    services: [service('a'), service('b')],
    endpoints: [slice('a-1', 'a', '10.0.0.1'), slice('b-1', 'b', '10.0.0.2')],
    nodes: [node('node-a'), node('node-b')],
    serviceCidrs: [],
  }
  store.update((tx) => tx.replaceAll(state))
  store.update((tx) => tx.replaceAll({ ...state, services: [service('a'), service('b')] }))
  expect(store.revision).toBe(1)
  const before = store.bookmark()
  store.update((tx) =>
    tx.replaceAll({
      ...state,
      services: [service('a')],
      endpoints: [slice('a-1', 'a', '10.0.0.9')],
      nodes: [node('node-b')],
    }),
  )
  const changes = store.changesSince(before)
  expect([...(changes?.services.keys() ?? [])].sort()).toEqual(['default/a', 'default/b'])
  expect([...(changes?.nodes.keys() ?? [])]).toEqual(['node-a'])
  expect(store.entry('default/b')).toBeUndefined()
})

describe('bookmarks', () => {
  test('several revisions are told as one: first state before, last state after, first trigger', () => {
    const store = syncedStore()
    store.update((tx) => tx.setService(service('a')))
    const bookmark = store.bookmark()
    store.update((tx) => tx.setService(service('a', { type: 'NodePort' })))
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1'), 7))
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.2'), 5))
    const change = store.changesSince(bookmark)?.services.get('default/a')
    expect(change?.before?.service?.type).toBe('ClusterIP')
    expect(change?.before?.sources.size).toBe(0)
    expect(change?.after).toBe(store.entry('default/a'))
    expect(change?.triggerUnixMs).toBe(7)
  })

  test('what came and went in between is not told', () => {
    const store = syncedStore()
    store.update((tx) => tx.setService(service('a')))
    const bookmark = store.bookmark()
    store.update((tx) => tx.setService(service('b')))
    store.update((tx) => tx.deleteService('default', 'b'))
    expect(store.changesSince(bookmark)?.services.size).toBe(0)
  })

  test('each reader is told from its own revision on, also when others have left theirs', () => {
    const store = syncedStore()
    const bookmarks = [store.bookmark()]
    for (const type of ['ClusterIP', 'NodePort', 'LoadBalancer']) {
      store.update((tx) => {
        tx.setService(service('a', { type }))
        tx.setNode(node('node-a', type))
      })
      bookmarks.push(store.bookmark())
    }
    const [first, second, third, fourth] = bookmarks as [Bookmark, Bookmark, Bookmark, Bookmark]
    const before = (bookmark: Bookmark) => {
      const { services, nodes } = store.changesSince(bookmark) ?? {}
      const types = [
        services?.get('default/a')?.before?.service?.type,
        services?.get('default/a')?.after?.service?.type,
      ]
      return [...types, nodes?.get('node-a')?.before?.topology?.zone]
    }
    const expected = [
      [undefined, 'LoadBalancer', undefined],
      ['ClusterIP', 'LoadBalancer', 'ClusterIP'],
      ['NodePort', 'LoadBalancer', 'NodePort'],
    ]
    expect([first, second, third].map(before)).toEqual(expected)
    expect(store.changesSince(fourth)?.services.size).toBe(0)
    store.release(second)
    expect([before(first), before(third)]).toEqual([expected[0], expected[2]])
    store.release(third)
    expect(before(first)).toEqual(expected[0])
  })

  test('times are those of the first change after the bookmark', () => {
    const store = syncedStore()
    const bookmark = store.bookmark()
    store.update((tx) => tx.setService(service('a')), 111)
    const later = store.bookmark()
    store.update((tx) => tx.setService(service('b')), 222)
    expect(store.changesSince(bookmark)).toMatchObject({ receivedAtMs: 111, revision: 2 })
    expect(store.changesSince(later)).toMatchObject({ receivedAtMs: 222, revision: 2 })
    const { committedAtMs } = store.changesSince(bookmark) ?? {}
    expect(committedAtMs).toBeLessThanOrEqual(store.changesSince(later)?.committedAtMs as number)
  })

  test('readers that are too far behind are lost, the oldest first', () => {
    const store = new Store({ maxSupersededEndpoints: 250 })
    const large = (first: number) => slice('a-1', 'a', ...Array.from({ length: 50 }, (_, i) => `10.0.${first}.${i}`))
    store.update((tx) => tx.setEndpoints(large(0)))
    const bookmarks: Bookmark[] = []
    for (let change = 1; change < 6; change++) {
      bookmarks.push(store.bookmark())
      store.update((tx) => tx.setEndpoints(large(change)))
    }
    expect(bookmarks.map((bookmark) => store.changesSince(bookmark) !== undefined)).toEqual([
      ...[false, false, false],
      ...[true, true],
    ])
    for (const bookmark of bookmarks) store.release(bookmark)
  })

  test('a reader that stays away costs one old state of what changes, however often it does', () => {
    const store = new Store({ maxSupersededEndpoints: 120 })
    store.update((tx) => tx.setEndpoints(slice('a-1', 'a', '10.0.0.1')))
    const away = store.bookmark()
    for (let change = 0; change < 100; change++) {
      const bookmark = store.bookmark()
      store.update((tx) => tx.setEndpoints(slice('a-1', 'a', `10.0.1.${change}`)))
      store.release(bookmark)
    }
    expect(store.changesSince(away)?.services.size).toBe(1)
  })

  test('one update that replaces everything is kept whole for those who were up to date', () => {
    const store = new Store()
    const large = (first: number) => ({
      ...slice('a-1', 'a'),
      endpoints: Array.from({ length: 250_000 }, (_, i) =>
        endpoint(`${first}.${i >> 16}.${(i >> 8) & 255}.${i & 255}`),
      ),
    })
    store.update((tx) => tx.setEndpoints(large(10)))
    const bookmark = store.bookmark()
    store.update((tx) => tx.setEndpoints(large(11)))
    expect(store.changesSince(bookmark)?.services.size).toBe(1)
  })

  test('readers at other revisions do not make it look at what services say', () => {
    const store = syncedStore()
    let looks = 0
    const watched = (type: string) =>
      Object.defineProperty(service('a'), 'type', { enumerable: true, get: () => (looks++ < 0 ? '' : type) })
    const bookmarks: Bookmark[] = []
    for (let change = 0; change < 10; change++) {
      bookmarks.push(store.bookmark())
      store.update((tx) => tx.setService(watched(String(change))))
    }
    const before = looks
    for (const bookmark of bookmarks) store.changesSince(bookmark)
    expect(looks - before).toBe(0)
  })
})

test('it is synced when every kind has been read', () => {
  const store = new Store()
  store.update((tx) => tx.setSynced('services', 'nodes'))
  expect(store.synced).toBe(false)
  store.update((tx) => tx.setSynced('endpoints'))
  expect(store.synced).toBe(true)
})
