import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { CertificateAuthority } from '../../core/sinks/api/grpc/testing/certificates.js'
import { serveApi } from '../../core/sinks/api/index.js'
import { changeSetsOf } from '../../core/sinks/local/index.js'
import { Store } from '../../core/store/index.js'
import { endpoint, service, syncedStore } from '../../core/testing/objects.js'
import { recordingLog, until } from '../../core/testing/until.js'
import type { ChangeSet } from '../change-set.js'
import { NodeState } from '../node-state.js'
import { run, watch } from '../run.js'
import { patienceAfter } from './connect.js'

// The client library against a real server, over real sockets.

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function stopper(): AbortController {
  const stop = new AbortController()
  cleanUps.push(() => stop.abort())
  return stop
}

async function serve(
  store: Store,
  listen = 'tcp://127.0.0.1:0',
  tls?: { keyFile: string; certFile: string; caFile: string },
) {
  const server = await serveApi({ store, log: silentLog, listen, ...(tls ? { tls } : {}) })
  cleanUps.push(() => server.close(50))
  return server
}

function storeWith(...names: string[]): Store {
  const store = syncedStore()
  store.update((tx) => {
    for (const name of names) {
      tx.setService(service(name))
      tx.setEndpoints({
        namespace: 'default',
        name: `${name}-1`,
        service: name,
        endpoints: [endpoint('10.0.0.1', { node: 'vm-001', podName: `${name}-pod` })],
      })
    }
  })
  return store
}

/** Runs the ten-line example and collects the names it was called with. */
function runNames(options: Parameters<typeof run>[1]) {
  const calls: string[][] = []
  const done = run(
    (items) =>
      void calls.push(items.map(({ service, endpoints }) => `${service.name}${endpoints[0]?.local ? '*' : ''}`)),
    {
      log: silentLog,
      errorDelayMs: 20,
      ...options,
    },
  )
  return { calls, done }
}

describe('run()', () => {
  test('gives the whole state of the node on each change', async () => {
    const store = storeWith('b', 'a')
    const server = await serve(store)
    const { calls } = runNames({ api: server.address, nodeName: 'vm-001', signal: stopper().signal })
    await until('the first call', () => calls.length === 1)
    store.update((tx) => tx.setService(service('c')))
    await until('the second call', () => calls.length === 2)
    expect(calls).toEqual([
      ['a*', 'b*'],
      ['a*', 'b*', 'c'],
    ])
  })

  test('ends after the first call when asked for once, and when stopped', async () => {
    const server = await serve(storeWith('a'))
    await runNames({ api: server.address, nodeName: 'n', once: true, signal: stopper().signal }).done
    const stop = stopper()
    const { calls, done } = runNames({ api: server.address, nodeName: 'n', signal: stop.signal })
    await until('the first call', () => calls.length === 1)
    stop.abort()
    await done
  })

  test('calls the handler again after it failed', async () => {
    const server = await serve(storeWith('a'))
    let count = 0
    const { lines, log } = recordingLog()
    const running = run(
      () => {
        if (++count === 1) throw new Error('the disk is full')
      },
      { api: server.address, nodeName: 'n', once: true, log, signal: stopper().signal },
    )
    await running
    expect(count).toBe(2)
    expect(lines.join('\n')).toContain('the disk is full')
  })

  test('comes back by itself when the server was away, and is not called for what it knows', async () => {
    const store = storeWith('a')
    const first = await serve(store)
    const { calls } = runNames({ api: first.address, nodeName: 'n', signal: stopper().signal })
    await until('the first call', () => calls.length === 1)
    await first.close(10)
    await serve(store, first.address)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(calls).toHaveLength(1)
    store.update((tx) => tx.setService(service('b')))
    await until('the second call', () => calls.length === 2)
    expect(calls[1]).toEqual(['a', 'b'])
  })

  test('waits for a server that is not there yet', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-'))
    cleanUps.push(() => rmSync(folder, { recursive: true }))
    const address = `unix://${join(folder, 'kpng.sock')}`
    const { calls } = runNames({ api: address, nodeName: 'n', signal: stopper().signal })
    await new Promise((resolve) => setTimeout(resolve, 100))
    await serve(storeWith('a'), address)
    await until('the first call', () => calls.length === 1)
  })

  test('goes to the next address when one fails', async () => {
    const store = storeWith('a')
    const first = await serve(store)
    const second = await serve(store)
    const { calls } = runNames({
      api: ['127.0.0.1:1', first.address, second.address],
      nodeName: 'n',
      signal: stopper().signal,
    })
    await until('the first call', () => calls.length === 1)
    expect(first.stats.calls).toBe(1)
    await first.close(10)
    await until('a watch at the second', () => second.stats.calls === 1)
    store.update((tx) => tx.setService(service('b')))
    await until('the second call', () => calls.length === 2)
  })

  test('is not kept by a server that does not know the cluster yet, where there is another', async () => {
    const starting = await serve(new Store())
    const ready = await serve(storeWith('a'))
    const { calls } = runNames({ api: [starting.address, ready.address], nodeName: 'n', signal: stopper().signal })
    await until('the first call', () => calls.length === 1, 12_000)
    expect(starting.stats.callsStarted).toBe(1)
  }, 300_000)

  test('speaks mutual TLS, and says what is wrong without it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-'))
    cleanUps.push(() => rmSync(folder, { recursive: true }))
    const authority = new CertificateAuthority()
    cleanUps.push(() => authority.remove())
    const [serverFiles, clientFiles] = [authority.issue('server'), authority.issue('client')]
    const server = await serve(storeWith('a'), 'tcp://127.0.0.1:0', serverFiles)
    await runNames({ api: server.address, nodeName: 'n', once: true, tls: clientFiles, signal: stopper().signal }).done
    const { lines, log } = recordingLog()
    const stop = stopper()
    const { calls, done } = runNames({ api: server.address, nodeName: 'n', log, signal: stop.signal })
    await until('a complaint', () => lines.some((line) => line.startsWith('W No connection')))
    stop.abort()
    await done
    expect(calls).toEqual([])
    await expect(
      runNames({
        api: server.address,
        tls: { ...clientFiles, keyFile: join(folder, 'nothing.key') },
        signal: stopper().signal,
      }).done,
    ).rejects.toThrow(/nothing.key cannot be read/)
  })
})

test.each([
  [0, 5000],
  [0.5, 5000],
  [1, 10_000],
  [1000, 30_000],
])('after %d rounds in vain a silent server is given %d ms', (rounds, ms) => expect(patienceAfter(rounds)).toBe(ms))

test('watch() gives change sets, each when it is asked for', async () => {
  const store = storeWith('a')
  const server = await serve(store)
  const changeSets = watch({ api: server.address, nodeName: 'vm-001', log: silentLog, signal: stopper().signal })[
    Symbol.asyncIterator
  ]()
  const first = (await changeSets.next()).value as ChangeSet
  expect([first.reset, [...first.services.keys()]]).toEqual([true, ['default/a']])
  expect(first.services.get('default/a')?.endpoints).toHaveLength(1)
  store.update((tx) => tx.setService(service('b')))
  store.update((tx) => tx.setService(service('c')))
  const second = (await changeSets.next()).value as ChangeSet
  expect([second.reset, [...second.services.keys()]]).toEqual([false, ['default/b', 'default/c']])
})

test('over gRPC and in the same process a node sees the same', async () => {
  const store = storeWith('a', 'b')
  const server = await serve(store)
  const { signal } = stopper()
  const overGrpc = new NodeState('vm-001')
  const inProcess = new NodeState('vm-001')
  const grpc = watch({ api: server.address, nodeName: 'vm-001', log: silentLog, signal })[Symbol.asyncIterator]()
  const local = changeSetsOf(store)({ nodeName: 'vm-001' }, signal)[Symbol.asyncIterator]()
  for (const change of [() => {}, () => store.update((tx) => tx.deleteEndpoints('default', 'a-1'))]) {
    change()
    overGrpc.apply((await grpc.next()).value as ChangeSet)
    inProcess.apply((await local.next()).value as ChangeSet)
    expect([...overGrpc.services]).toEqual([...inProcess.services])
  }
  expect(overGrpc.services.get('default/a')?.endpoints).toEqual([])
})
