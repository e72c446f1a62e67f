import { silentLog } from '@kpng/api'
import { expect, it } from 'vitest'
import { selectionForProxy } from '../../kubernetes/index.js'
import { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import { endpointSlicesKind, PendingWrites } from './source.js'
import { slice } from './testing/cluster.js'

const startedAt = Date.UTC(2026, 0, 1)

/** A slice whose change began so many seconds after our start. */
function changed(address: string, seconds: number) {
  const { metadata, ...rest } = slice('web-1', 'web', ['10.1.0.1', address])
  const began = new Date(startedAt + seconds * 1000).toISOString()
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': began }
  return { ...rest, metadata: { ...metadata, annotations } }
}

const slicesInto = (store: Store) =>
  new PendingWrites(endpointSlicesKind(selectionForProxy(), store, startedAt), new Skips(silentLog))

it('a change that another one overtakes in its batch began when it began, unless that was before our start', () => {
  const store = new Store()
  const start = store.bookmark()
  const writes = slicesInto(store)
  for (const [address, seconds] of [
    ['10.1.0.2', -5],
    ['10.1.0.3', 1],
    ['10.1.0.4', 2],
  ] as const)
    writes.add({ type: 'set', object: changed(address, seconds) })
  store.update((transaction) => writes.writeTo(transaction))
  expect(store.revision).toBe(1)
  const change = store.changesSince(start)?.services.get('default/web')
  expect(change?.triggerUnixMs).toBe(startedAt + 1000)
  expect(change?.after?.sources.get('web-1')?.map(({ v4 }) => v4[0])).toEqual(['10.1.0.1', '10.1.0.4'])
})

it('an object that was changed and then deleted in one batch is gone', () => {
  const store = new Store()
  const writes = slicesInto(store)
  writes.add({ type: 'set', object: changed('10.1.0.2', 1) })
  writes.add({ type: 'delete', namespace: 'default', name: 'web-1' })
  store.update((transaction) => writes.writeTo(transaction))
  expect(store.entry('default/web')).toBeUndefined()
})
