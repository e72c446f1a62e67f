import { silentLog } from '@kpng/api'
import { afterEach, expect, test } from 'vitest'
import { serveApi } from '../../core/sinks/api/index.js'
import { service, syncedStore } from '../../core/testing/objects.js'
import { until } from '../../core/testing/until.js'
import { watch } from '../run.js'
import { WatchStatus } from '../source-status.js'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('a node that lost its core knows since when, and when the core last sent something', async () => {
  const store = syncedStore()
  const serve = async (listen: string) => {
    const server = await serveApi({ store, log: silentLog, listen })
    cleanUps.push(() => server.close(50))
    return server
  }
  const first = await serve('tcp://127.0.0.1:0')
  const stop = new AbortController()
  cleanUps.push(() => stop.abort())
  const status = new WatchStatus('core')
  const changeSets = watch({
    api: first.address,
    nodeName: 'a',
    log: silentLog,
    signal: stop.signal,
    errorDelayMs: 20,
    status,
  })
  void (async () => {
    for await (const _ of changeSets);
  })()
  await until('connected', () => status.isConnected)
  const heardAt = status.heardAtMs as number
  store.update((tx) => tx.setService(service('a')))
  await until('heard', () => (status.heardAtMs as number) > heardAt)
  await first.close(0)
  await until('lost', () => !status.isConnected)
  const lostAt = status.changedAtMs
  await serve(first.address)
  await until('connected again', () => status.isConnected)
  expect(status.changedAtMs).toBeGreaterThan(lostAt)
})
