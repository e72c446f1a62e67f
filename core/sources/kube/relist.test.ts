import { expect, it } from 'vitest'
import { sleep, until } from '../../testing/until.js'
import { api, service, services, slice, slices, watch } from './testing/cluster.js'
import type { FakeApi } from './testing/fake-api.js'

// A list after an outage brings the store from the state before to the state after, and shows nothing in between.

const others = Array.from({ length: 700 }, (_, index) => `m${String(index).padStart(4, '0')}`)

async function cluster(streaming: FakeApi['streaming']) {
  const server = await api()
  server.streaming = streaming
  server.set(services, service('web'))
  server.set(slices, slice('aaa-web', 'web', ['10.1.0.1', '10.1.0.2']))
  for (const name of others) server.set(slices, slice(name, 'other', ['10.2.0.1']))
  const { store } = await watch(server, { pageSize: 500 })
  await until(() => store.synced)
  const addressesOf = (path: string) =>
    [...(store.entry(path)?.sources.values() ?? [])].flatMap((endpoints) => endpoints.flatMap(({ v4 }) => v4))
  return { server, store, addressesOf }
}

/** The watches are lost, and with what happens meanwhile their versions expire. */
function outage(server: FakeApi, meanwhile: () => void): void {
  server.intercept = (_, response) => {
    response.destroy()
    return true
  }
  server.dropConnections()
  meanwhile()
  server.compact()
  server.intercept = () => false
}

it.each([
  ['pages', 'refuse'],
  ['a stream', 'yes'],
] as const)(
  'a list in %s is one update: endpoints that moved to another slice are never gone',
  async (_, streaming) => {
    const { server, store, addressesOf } = await cluster(streaming)
    const seen: number[] = []
    store.onChange(() => seen.push(addressesOf('default/web').length))
    const { revision } = store
    outage(server, () => {
      server.set(slices, slice('aaa-web', 'web', []))
      server.set(slices, slice('zzz-web', 'web', ['10.1.0.1', '10.1.0.2']))
      for (const name of others) server.set(slices, slice(name, 'other', ['10.2.0.2']))
      server.remove(slices, 'm0000', 'default')
    })
    await until(() => store.entry('default/web')?.sources.has('zzz-web') ?? false)
    await sleep(50)
    expect(store.revision).toBe(revision + 1)
    expect(seen).toEqual([2])
    expect(new Set(addressesOf('default/other'))).toEqual(new Set(['10.2.0.2']))
    expect(store.entry('default/other')?.sources.has('m0000')).toBe(false)
  },
)

it('a list that breaks off changes nothing, however far it came; what it brought is there when one is complete', async () => {
  const { server, store, addressesOf } = await cluster('refuse')
  server.watchCache = false
  const { revision } = store
  let broken = 0
  outage(server, () => {
    for (const name of others) server.set(slices, slice(name, 'other', ['10.2.0.2']))
  })
  server.intercept = ({ path, kind }, response) => {
    if (path !== slices || kind !== 'list' || broken >= 2) return false
    broken++
    const items = server.objects(slices).slice(0, 600)
    const text = JSON.stringify({ metadata: { resourceVersion: '1' }, items })
    response.writeHead(200, { 'content-type': 'application/json' }).write(text.slice(0, -2))
    setTimeout(() => response.destroy(), 20)
    // The next attempt finds these objects changed once more.
    if (broken === 1) for (const name of others) server.set(slices, slice(name, 'other', ['10.2.0.3']))
    else expect(store.revision).toBe(revision)
    return true
  }
  await until(() => store.revision > revision)
  expect(broken).toBe(2)
  expect(store.revision).toBe(revision + 1)
  expect(new Set(addressesOf('default/other'))).toEqual(new Set(['10.2.0.3']))
})
