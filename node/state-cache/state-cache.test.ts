import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { type Backend, type Changes, type NodeView, runBackend, SourceStatus } from '@kpng/client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { changeSetsOf } from '../../core/sinks/local/index.js'
import { Store } from '../../core/store/index.js'
import { endpoint, node, service } from '../../core/testing/objects.js'
import { recordingLog, until } from '../../core/testing/until.js'
import { withoutRoot } from '../testing/without-root.js'
import { StateCache, type StateCacheOptions } from './state-cache.js'

// A store in place of the source: it has not answered until it is synced. The runner and the files are real.

const cleanUps: (() => unknown)[] = []
let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-state-cache-'))
  file = join(folder, 'kpng', 'state-cache')
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  rmSync(folder, { recursive: true, force: true })
})

function fill(store: Store, names: readonly string[] = ['web', 'dns']): void {
  store.update((tx) => {
    tx.setNode(node('worker-1', 'zone-a'))
    tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16', 'fd00::/108'] }))
    for (const [index, name] of names.entries()) {
      const clusterIps = { v4: [`10.96.0.${index + 1}`], v6: [`fd00::${index + 1}`] }
      tx.setService(
        service(name, {
          ips: { clusterIps, externalIps: {}, loadBalancerIps: { v4: ['192.0.2.1'] } },
          sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 30 } },
          labels: { app: name },
          ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }],
        }),
      )
      tx.setEndpoints({
        namespace: 'default',
        name: `${name}-slice`,
        service: name,
        // Not in the order of their names, and more than ten: the order of the file is theirs.
        endpoints: [12, 3, 1, 11, 2, 10, 4, 9, 5, 8, 6, 7].map((number) =>
          endpoint(`10.244.${index}.${number}`, { podName: `pod-${number}`, node: number % 2 ? 'worker-1' : 'other' }),
        ),
      })
    }
    tx.setSynced('services', 'endpoints', 'nodes')
  })
}

/** Starts a backend behind a state cache. */
function start(options: Partial<StateCacheOptions & { rules: () => Promise<boolean>; store: Store }> = {}) {
  const store = options.store ?? new Store()
  const stop = new AbortController()
  const { lines, log } = recordingLog()
  const synced: { services: string[]; changes: Changes }[] = []
  const status = new SourceStatus()
  let view: NodeView | undefined
  const backend: Backend = {
    setup: async () => {},
    sync: async (given, changes) => {
      view = given
      synced.push({ services: [...given.services.keys()].sort(), changes })
    },
    cleanup: async () => {},
    close: async () => {},
    ...(options.rules ? { hasRules: options.rules } : {}),
  }
  const cache = new StateCache({
    path: file,
    nodeName: 'worker-1',
    origin: async () => 'https://10.0.0.1:6443',
    backend,
    status,
    log,
    answerWithinMs: 50,
    writeDelayMs: 5,
    writeIntervalMs: 5,
    ...options,
  })
  const running = runBackend(backend, {
    changeSets: cache.changeSets(changeSetsOf(store)),
    nodeName: 'worker-1',
    log,
    signal: stop.signal,
    onSync: (report) => cache.onSync(report),
  })
  const end = async () => {
    stop.abort()
    await running
    await cache.close()
  }
  cleanUps.push(end)
  const said = (text: string) => lines.filter((line) => line.includes(text))
  return { store, lines, said, synced, status, view: () => view as NodeView, end }
}

/** A file with the state of a source, and that state. */
async function saved(): Promise<NodeView> {
  const first = start()
  fill(first.store)
  await until('it is written', () => readFolder().includes('state-cache'))
  await first.end()
  return first.view()
}

const readFolder = () => {
  try {
    return readdirSync(join(folder, 'kpng'))
  } catch {
    return []
  }
}

const contentOf = ({ node, services, serviceCidrs }: NodeView) => ({ node, services, serviceCidrs })

describe('a source that does not answer', () => {
  test('is stood in for by the last state, which is marked as stale', async () => {
    const before = await saved()
    const { synced, view, said, status } = start()
    await until('the cache is served', () => synced.length === 1)
    expect(contentOf(view())).toStrictEqual(contentOf(before))
    expect(said('W The source has not answered yet: serving the Services of the state cache')).toEqual([
      expect.stringMatching(/"file":".*state-cache","savedAt":"20.*","services":2/),
    ])
    expect(status.stateCache?.savedAtMs).toBeTypeOf('number')
  })

  test('until the run ends: it has not answered', async () => {
    await saved()
    const { synced, said, end } = start()
    await until('the cache is served', () => synced.length === 1)
    const { ino } = statSync(file)
    await end()
    expect(said('The source has answered')).toEqual([])
    expect(statSync(file).ino).toBe(ino)
  })

  test('and then answers with the same: nothing is written', async () => {
    await saved()
    const { ino } = statSync(file)
    const { synced, store, status, end } = start()
    await until('the cache is served', () => synced.length === 1)
    fill(store)
    await until('the source has answered', () => status.stateCache?.savedAtMs === undefined)
    await end()
    expect(statSync(file).ino).toBe(ino)
  })

  test('and then answers with the same: nothing is touched', async () => {
    await saved()
    const { synced, store, status, said } = start()
    await until('the cache is served', () => synced.length === 1)
    fill(store)
    await until('the source has answered', () => status.stateCache?.savedAtMs === undefined)
    store.update((tx) => tx.setService(service('later')))
    await until('a later change is synced', () => synced.length > 1)
    expect(synced.slice(1).map(({ changes }) => [...changes.services.keys()])).toEqual([['default/later']])
    expect(said('I The source has answered: the state cache is no longer in use')).toHaveLength(1)
  })

  test('and then answers with something else: only what differs changes', async () => {
    await saved()
    const { synced, store } = start()
    await until('the cache is served', () => synced.length === 1)
    fill(store, ['web', 'new'])
    await until('the difference is synced', () => synced.length === 2)
    expect(synced[1]?.services).toEqual(['default/new', 'default/web'])
    expect([...(synced[1]?.changes.services.keys() ?? [])].sort()).toEqual(['default/dns', 'default/new'])
    expect(synced[1]?.changes).toMatchObject({ full: false, node: false, serviceCidrs: false })
  })

  test('while rules of the last run are in the kernel: those stay', async () => {
    await saved()
    const { synced, said, store, status } = start({ rules: async () => true })
    await until('it is said', () => said('The rules of the last run stay').length === 1)
    expect([synced, status.stateCache?.savedAtMs]).toEqual([[], undefined])
    fill(store)
    await until('the source is served', () => synced.length === 1)
  })

  test('if it cannot be told whether there are rules, the cache is not used', async () => {
    await saved()
    const { said } = start({ rules: () => Promise.reject(new Error('no netlink')) })
    await until('it is said', () => said('W The state cache is ignored').length === 1)
    expect(said('no netlink')).toHaveLength(1)
  })

  test('and no file: it is waited for', async () => {
    const { said, store, synced } = start()
    await until('it is said', () => said(`there is no state cache: waiting {"file":"${file}"}`).length === 1)
    fill(store)
    await until('the source is served', () => synced.length === 1)
  })

  test('until the file was read: the answer counts, not the file', async () => {
    await saved()
    let tell = (_: boolean) => {}
    const { synced, store, said } = start({ rules: () => new Promise((resolve) => (tell = resolve)) })
    await new Promise((resolve) => setTimeout(resolve, 60))
    fill(store, ['new'])
    await until('the source is served', () => synced.length === 1)
    tell(false)
    expect(synced[0]?.services).toEqual(['default/new'])
    expect(said('serving the Services')).toEqual([])
  })
})

test('a source that answers in time is served alone', async () => {
  await saved()
  const store = new Store()
  fill(store, ['new'])
  const { synced, said } = start({ store, answerWithinMs: 30_000 })
  await until('the source is served', () => synced.length === 1)
  expect(synced[0]?.services).toEqual(['default/new'])
  expect(said('state cache')).toEqual([])
})

describe('a file that cannot be used is ignored, and the warning names it and the reason', () => {
  const ignored = async (reason: string | RegExp, options: Partial<StateCacheOptions> = {}) => {
    const { said, synced, store, end } = start(options)
    await until('it is ignored', () => said('W The state cache is ignored').length === 1)
    expect(said('ignored')[0]).toContain(`"file":"${file}"`)
    expect(said('ignored')[0]).toMatch(reason)
    expect(synced).toEqual([])
    fill(store)
    await until('the source is served', () => synced.length === 1)
    await end()
  }

  test.each([
    ['empty', () => Buffer.alloc(0), /it is not a state cache of kpng/],
    ['something else', () => Buffer.from('{"kind":"List"}\n'), /it is not a state cache of kpng/],
    ['without its end', (content: Buffer) => content.subarray(0, -1), /it is damaged: its checksum is wrong/],
    ['half of it', (content: Buffer) => content.subarray(0, content.length / 2), /it is damaged/],
    ['only its first line', (content: Buffer) => content.subarray(0, content.indexOf(10) + 1), /it is damaged/],
    ['less than its first line', (content: Buffer) => content.subarray(0, 20), /it is not a state cache of kpng/],
    [
      'with a wrong bit',
      (content: Buffer) => Buffer.from(content.map((byte, at) => (at === content.length - 100 ? byte ^ 1 : byte))),
      /it is damaged/,
    ],
    [
      'of another format version',
      (content: Buffer) => Buffer.from(content.toString('latin1').replace('"version":1', '"version":2'), 'latin1'),
      /it is of another format version \(2, not 1\)/,
    ],
  ])('%s', async (_, change, reason) => {
    await saved()
    writeFileSync(file, change(readFileSync(file)))
    await ignored(reason)
  })

  test('a folder', async () => {
    mkdirSync(file, { recursive: true })
    await ignored(/it cannot be read: EISDIR/)
  })

  test('of another node', async () => {
    await saved()
    await ignored(/it is of another node \(worker-1, not worker-2\)/, { nodeName: 'worker-2' })
  })

  test('of another cluster', async () => {
    await saved()
    await ignored(/it is of another source \(https:\/\/10\.0\.0\.1:6443, not https:\/\/10\.9\.9\.9:6443\)/, {
      origin: async () => 'https://10.9.9.9:6443',
    })
  })
})

describe('the file', () => {
  test('can be read by its owner alone, and what a crash left beside it is replaced', async () => {
    mkdirSync(join(folder, 'kpng'))
    writeFileSync(`${file}.tmp`, 'half', { mode: 0o644 })
    await saved()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFolder()).toEqual(['state-cache'])
  })

  test('its folder is made for its owner alone', async () => {
    await saved()
    expect(statSync(join(folder, 'kpng')).mode & 0o777).toBe(0o700)
  })

  test('is written when the run ends, however short it was', async () => {
    const first = start({ writeDelayMs: 600_000 })
    fill(first.store)
    await until('it is synced', () => first.synced.length === 1)
    expect(readFolder()).toEqual([])
    await first.end()
    expect(readFolder()).toEqual(['state-cache'])
  })

  test('is written in slices with pauses, so that changes do not wait, but at the end at once', async () => {
    const first = start({ pauseMs: 600_000 })
    fill(first.store)
    await until('the first slice is written', () => readFolder().includes('state-cache.tmp'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(readFolder()).toEqual(['state-cache.tmp'])
    await first.end()
    expect(readFolder()).toEqual(['state-cache'])
    const second = start()
    await until('the file is used', () => second.synced.length === 1)
    expect(contentOf(second.view())).toEqual(contentOf(first.view()))
  })

  test('is not written again before its time, but at the end', async () => {
    const { store, synced, end } = start({ writeIntervalMs: 600_000 })
    fill(store)
    await until('it is written', () => readFolder().includes('state-cache'))
    const { ino } = statSync(file)
    store.update((tx) => tx.setService(service('later')))
    await until('the change is synced', () => synced.length === 2)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(statSync(file).ino).toBe(ino)
    await end()
    expect(statSync(file).ino).not.toBe(ino)
  })

  test.each([
    [
      'a folder that is missing',
      () => {
        chmodSync(folder, 0o777)
        return join(folder, 'none', 'kpng', 'state-cache')
      },
      /ENOENT/,
    ],
    [
      'a folder that is read-only',
      () => {
        chmodSync(folder, 0o555)
        return join(folder, 'state-cache')
      },
      /EACCES/,
    ],
  ])('in %s: one line, and it goes on', async (_, pathOf, reason) => {
    const path = pathOf()
    await withoutRoot(async () => {
      const { store, said, synced, end } = start({ path })
      fill(store)
      await until('it is said', () => said('W The state cache cannot be written').length === 1)
      store.update((tx) => tx.setService(service('later')))
      await until('the change is synced', () => synced.length === 2)
      await end()
      expect(said('cannot be written')).toEqual([expect.stringMatching(reason)])
      expect(said('cannot be written')[0]).toContain(`"file":"${path}"`)
    })
    chmodSync(folder, 0o755)
  })
})
