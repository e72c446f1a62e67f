import { create, toBinary } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { serveApi } from '../../core/sinks/api/index.js'
import { service, syncedStore } from '../../core/testing/objects.js'
import { until } from '../../core/testing/until.js'
import { watch } from '../run.js'
import { WatchStatus } from '../source-status.js'
import { operationsOf } from './connect.js'

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

describe('a core that has lost its own source', () => {
  async function follow(source?: { isStale: boolean }) {
    const server = await serveApi({
      store: syncedStore(),
      log: silentLog,
      listen: 'tcp://127.0.0.1:0',
      ...(source && { source }),
    })
    const stop = new AbortController()
    const status = new WatchStatus('core')
    const operations = operationsOf({
      api: server.address,
      log: silentLog,
      signal: stop.signal,
      errorDelayMs: 20,
      status,
      stalenessCheckMs: 20,
      method: '/localv1.Sets/Watch',
      request: () => toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName: 'a' })),
    })
    void (async () => {
      for await (const _ of operations);
    })()
    cleanUps.push(() => server.close(50))
    cleanUps.push(() => stop.abort())
    await until('connected', () => status.isConnected)
    return { server, status }
  }

  test('tells its nodes so, though it has no changes for them, and that it is well again', async () => {
    const source = { isStale: false }
    const { status } = await follow(source)
    expect(status.isStale()).toBe(false)
    source.isStale = true
    await until('stale', () => status.isStale())
    expect(status.isConnected).toBe(true)
    const since = status.serverStaleSinceMs
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(status.serverStaleSinceMs).toBe(since)
    source.isStale = false
    await until('well again', () => !status.isStale())
  })

  test('is not known to be stale when the connection is lost, nor if it does not know the question', async () => {
    const { status, server } = await follow({ isStale: true })
    await until('stale', () => status.isStale())
    await server.close(0)
    await until('lost', () => !status.isConnected)
    expect(status.isStale()).toBe(false)
    const { status: ofOlderCore } = await follow()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect([ofOlderCore.isConnected, ofOlderCore.isStale()]).toEqual([true, false])
  })
})
