import { silentLog } from '@kpng/api'
import { expect, it } from 'vitest'
import { Store } from '../../store/index.js'
import { selectionForProxy } from '../objects/index.js'
import { Skips } from '../skips.js'
import { endpointSlicesKind } from './kinds.js'
import { StoreWriter } from './store-writer.js'
import { slice } from './testing/cluster.js'

const startedAt = Date.UTC(2026, 0, 1)

/** A slice whose change began so many seconds after our start. */
function changed(address: string, seconds: number) {
  const { metadata, ...rest } = slice('web-1', 'web', ['10.1.0.1', address])
  const began = new Date(startedAt + seconds * 1000).toISOString()
  const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': began }
  return { ...rest, metadata: { ...metadata, annotations } }
}

function slicesInto(store: Store) {
  const { mapping } = endpointSlicesKind(selectionForProxy(), startedAt)
  return new StoreWriter({ store, skips: new Skips(silentLog), mapping, onRevision: () => {} })
}

it('a change that another one overtakes in its batch began when it began, unless that was before our start', () => {
  const store = new Store()
  const start = store.bookmark()
  const writer = slicesInto(store)
  for (const [address, seconds] of [
    ['10.1.0.2', -5],
    ['10.1.0.3', 1],
    ['10.1.0.4', 2],
  ] as const)
    writer.set(changed(address, seconds))
  writer.flush(false)
  expect(store.revision).toBe(1)
  const change = store.changesSince(start)?.services.get('default/web')
  expect(change?.triggerUnixMs).toBe(startedAt + 1000)
  expect(change?.after?.sources.get('web-1')?.map(({ v4 }) => v4[0])).toEqual(['10.1.0.1', '10.1.0.4'])
})

it('an object that was changed and then deleted in one batch is gone', () => {
  const store = new Store()
  const writer = slicesInto(store)
  writer.set(changed('10.1.0.2', 1))
  writer.delete('default', 'web-1')
  writer.flush(true)
  expect(store.entry('default/web')).toBeUndefined()
})
