import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { recordChanges } from '../../sinks/record/index.js'
import { Store } from '../../store/index.js'
import { endpoint, node, service, syncedStore } from '../../testing/objects.js'
import { recordingLog, until } from '../../testing/until.js'
import { contentsOf } from '../../view/testing/naive-view.js'
import { replay } from './index.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-record-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Records what the function does to a store, one change set per call of `change`. */
async function recorded(write: (change: (update: Parameters<Store['update']>[0]) => Promise<void>) => Promise<void>) {
  const store = syncedStore()
  const path = join(folder, 'record')
  const stop = new AbortController()
  const syncs = async () => (await readFile(path, 'utf8').catch(() => '')).split('"sync"').length - 1
  const done = recordChanges({ store, path, log: silentLog, signal: stop.signal })
  await until('the first state is written', async () => (await syncs()) === 1)
  await write(async (update) => {
    const before = await syncs()
    store.update(update)
    await until('the change is written', async () => (await syncs()) > before)
  })
  stop.abort()
  await done
  return { path, store }
}

/** Replays at once. Resolves when the last state stands. */
async function replayed(path: string, options: { untilMs?: number; speed?: number } = {}) {
  const store = new Store()
  const stop = new AbortController()
  const pauses: number[] = []
  const { lines, log } = recordingLog()
  const pause = async (ms: number) => void pauses.push(ms)
  const done = replay({ store, path, log, signal: stop.signal, pause, ...options })
  await Promise.race([done, until('the end', () => lines.some((line) => line.includes('its last state stays')))])
  stop.abort()
  await done
  return { store, pauses, lines }
}

const sorted = (store: Store) => {
  const { entries, nodes, serviceCidrs } = contentsOf(store)
  const byPath = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))
  return { entries: byPath, nodes: [...nodes.values()], serviceCidrs: [...serviceCidrs.values()] }
}

const slice = (name: string, ...ips: string[]) => ({
  ...{ namespace: 'default', name: `${name}-1`, service: name },
  endpoints: ips.map((ip) => endpoint(ip, { node: 'a' })),
})

test('a replayed record ends in the state that was recorded', async () => {
  const { path, store } = await recorded(async (change) => {
    await change((transaction) => {
      transaction.setNode(node('a', 'zone-1'))
      transaction.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }))
      transaction.setService(service('web'))
      transaction.setEndpoints(slice('web', '10.0.0.1', '10.0.0.2'))
    })
    await change((transaction) => transaction.setEndpoints(slice('web', '10.0.0.2', '10.0.0.3')))
    await change((transaction) => {
      transaction.setService(service('api'))
      transaction.deleteService('default', 'web')
    })
  })
  const { store: again } = await replayed(path)
  expect(sorted(again)).toEqual(sorted(store))
  expect(again.revision).toBe(3)
})

test('pauses are those of the record, divided by the speed', async () => {
  const lines = [
    { kpng: 'record', version: 1, startedAt: '2026-01-01T00:00:00Z' },
    { op: 'reset' },
    { op: 'sync', atMs: 5 },
    { op: 'sync', atMs: 1005 },
    { op: 'sync', atMs: 4005 },
  ]
  const path = join(folder, 'record')
  await writeFile(path, lines.map((line) => JSON.stringify(line)).join('\n'))
  expect((await replayed(path)).pauses).toEqual([1000, 3000])
  expect((await replayed(path, { speed: 10 })).pauses).toEqual([100, 300])
  expect((await replayed(path, { untilMs: 2000 })).pauses).toEqual([1000])
})

test('a record that was cut off is good up to there', async () => {
  const { path } = await recorded(async (change) => {
    await change((transaction) => transaction.setService(service('web')))
    await change((transaction) => transaction.setService(service('api')))
  })
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.slice(0, text.lastIndexOf('"api"') + 3))
  const { store, lines } = await replayed(path)
  expect(store.entries().map((entry) => entry.path)).toEqual(['default/web'])
  expect(lines.join('\n')).toContain('ends in the middle of a line')
})

test.each([
  ['a YAML file', 'services: []\n', /is not a record of kpng/],
  ['an empty file', '', /is not a record of kpng/],
  ['a newer version', '{"kpng":"record","version":99}\n', /is a record of version 99.*Use a newer kpng/],
  ['no changes', '{"kpng":"record","version":1}\n', /has no change to replay/],
  [
    'a message that is none',
    '{"kpng":"record","version":1}\n{"op":"set","set":"GLOBAL_NODE_INFOS","path":"|a||","message":{"node":7}}\n',
    /record:2: \|a\|\| cannot be understood/,
  ],
])('%s is refused with a sentence', async (_, text, message) => {
  const path = join(folder, 'record')
  await writeFile(path, text)
  await expect(replayed(path)).rejects.toThrow(message)
})

test('a missing file, and a folder that cannot be written to', async () => {
  await expect(replayed(join(folder, 'missing'))).rejects.toThrow(/missing cannot be read/)
  const done = recordChanges({
    ...{ store: syncedStore(), log: silentLog, signal: new AbortController().signal },
    path: join(folder, 'no', 'record'),
  })
  await expect(done).rejects.toThrow(/record cannot be written/)
})

test('only its owner may read a record', async () => {
  const { path } = await recorded(async () => {})
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})
