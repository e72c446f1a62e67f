import { create } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import type { Backend, Changes, Runner } from './backend.js'
import type { ChangeSet, ChangeSetSource } from './change-set.js'
import { type RunnerOptions, runBackend } from './runner.js'
import { pause } from './stop.js'

/** A source that tests push change sets into. */
function manualSource() {
  const queue: ChangeSet[] = []
  let wake = () => {}
  const source: ChangeSetSource = async function* (_, signal) {
    signal.addEventListener('abort', () => wake(), { once: true })
    while (!signal.aborted) {
      const next = queue.shift()
      if (next) yield next
      else
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  }
  const push = (...names: string[]) => {
    const sets = names.map((name) => ({
      set: localv1.Set.SERVICES as const,
      path: `d/${name}`,
      message: create(localv1.ServiceSchema, { namespace: 'd', name }),
    }))
    queue.push({ reset: false, sets, deletes: [], triggers: [] })
    wake()
  }
  return { source, push }
}

interface Sync {
  readonly services: string[]
  readonly changed: string[]
  readonly full: boolean
}

const stops: AbortController[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort()
})

function start(behave: (count: number) => void | Promise<void> = () => {}, options: Partial<RunnerOptions> = {}) {
  const stop = new AbortController()
  stops.push(stop)
  const { source, push } = manualSource()
  const syncs: Sync[] = []
  let runner: Runner | undefined
  const backend: Backend = {
    setup: async (given) => {
      runner = given
    },
    sync: async (view, changes: Changes) => {
      syncs.push({ services: [...view.services.keys()], changed: [...changes.services.keys()], full: changes.full })
      await behave(syncs.length)
    },
    cleanup: async () => {},
    close: async () => {},
  }
  const running = runBackend(backend, {
    changeSets: source,
    nodeName: 'n',
    log: silentLog,
    signal: stop.signal,
    retryMs: 10,
    ...options,
  })
  const until = async (holds: () => boolean) => {
    for (let i = 0; !holds(); i++) {
      if (i > 400) throw new Error(`in vain: ${JSON.stringify(syncs)}`)
      await pause(5, stop.signal)
    }
  }
  return { push, syncs, stop, running, until, runner: () => runner as Runner }
}

describe('a backend', () => {
  test('is called with everything first, and then with what changed', async () => {
    const { push, syncs, until } = start()
    push('a', 'b')
    await until(() => syncs.length === 1)
    push('c')
    await until(() => syncs.length === 2)
    expect(syncs).toEqual([
      { services: ['d/a', 'd/b'], changed: ['d/a', 'd/b'], full: true },
      { services: ['d/a', 'd/b', 'd/c'], changed: ['d/c'], full: false },
    ])
  })

  test('that fails is called again from the full view, with newer changes, and not at once', async () => {
    let failing = true
    const { push, syncs, until } = start(
      () => {
        if (failing) throw new Error('no')
      },
      { retryMs: 60 },
    )
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await pause(20, new AbortController().signal)
    expect(syncs).toHaveLength(1)
    failing = false
    await until(() => syncs.length === 2)
    expect(syncs[1]).toEqual({ services: ['d/a', 'd/b'], changed: ['d/a', 'd/b'], full: true })
    push('c')
    await until(() => syncs.length === 3)
    expect(syncs[2]).toMatchObject({ changed: ['d/c'], full: false })
  })

  test('that keeps failing is called ever more rarely', async () => {
    const times: number[] = []
    const { push, until } = start(
      () => {
        times.push(performance.now())
        throw new Error('no')
      },
      { retryMs: 20, maxRetryMs: 80 },
    )
    push('a')
    await until(() => times.length === 5)
    const gaps = times.slice(1).map((time, index) => time - (times[index] as number))
    expect(gaps[0]).toBeGreaterThanOrEqual(18)
    expect(gaps[1]).toBeGreaterThanOrEqual(38)
    expect(gaps[2]).toBeGreaterThanOrEqual(78)
    expect(gaps[3]).toBeLessThan(160)
  })

  test('that is slow gets what changed meanwhile in one go', async () => {
    let release = () => {}
    const { push, syncs, until } = start((count) =>
      count === 1
        ? new Promise<void>((resolve) => {
            release = resolve
          })
        : undefined,
    )
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await pause(20, new AbortController().signal)
    expect(syncs).toHaveLength(1)
    release()
    await until(() => syncs.length === 2)
    expect(syncs[1]).toMatchObject({ changed: ['d/b'], full: false })
  })

  test('is left alone for the least interval', async () => {
    const { push, syncs, until } = start(() => {}, { minSyncIntervalMs: 80 })
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await pause(20, new AbortController().signal)
    push('c')
    await pause(20, new AbortController().signal)
    expect(syncs).toHaveLength(1)
    await until(() => syncs.length === 2)
    expect(syncs[1]).toMatchObject({ changed: ['d/b', 'd/c'] })
  })

  test('can ask for a full sync, and gets one periodically when that is wanted', async () => {
    const asked = start()
    asked.push('a')
    await asked.until(() => asked.syncs.length === 1)
    asked.runner().requestFullSync('drift')
    await asked.until(() => asked.syncs.length === 2)
    expect(asked.syncs[1]).toEqual({ services: ['d/a'], changed: [], full: true })

    const periodic = start(() => {}, { fullSyncIntervalMs: 30 })
    periodic.push('a')
    await periodic.until(() => periodic.syncs.length >= 3)
    expect(periodic.syncs[2]).toMatchObject({ full: true, changed: [] })
  })

  test('is asked again, with nothing new, when that is wanted', async () => {
    const { push, syncs, until } = start(() => {}, { syncIntervalMs: 20 })
    push('a')
    await until(() => syncs.length >= 3)
    expect(syncs.slice(0, 3)).toEqual([
      { services: ['d/a'], changed: ['d/a'], full: true },
      { services: ['d/a'], changed: [], full: false },
      { services: ['d/a'], changed: [], full: false },
    ])
  })

  test('goes on when those who look on fail', async () => {
    const fail = () => {
      throw new Error('no more memory for metrics')
    }
    const { push, syncs, until } = start(() => {}, { onSync: fail, onQueued: fail })
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await until(() => syncs.length === 2)
    expect(syncs[1]).toEqual({ services: ['d/a', 'd/b'], changed: ['d/b'], full: false })
  })

  test('is left in place when the run is stopped', async () => {
    const { push, syncs, until, stop, running } = start()
    push('a')
    await until(() => syncs.length === 1)
    stop.abort()
    await running
    push('b')
    await pause(20, new AbortController().signal)
    expect(syncs).toHaveLength(1)
  })

  test('that carries traffic itself is closed at the end', async () => {
    const stop = new AbortController()
    const { source } = manualSource()
    let closed = 0
    const backend: Backend = {
      setup: async () => {},
      sync: async () => {},
      cleanup: async () => {},
      close: async () => {
        closed++
      },
    }
    const running = runBackend(backend, { changeSets: source, nodeName: 'n', log: silentLog, signal: stop.signal })
    stop.abort()
    await running
    expect(closed).toBe(1)
  })

  test('whose machine lacks something is never called', async () => {
    const stop = new AbortController()
    const { source } = manualSource()
    const backend: Backend = {
      setup: () => Promise.reject(new Error('nft is missing')),
      sync: () => Promise.reject(new Error('called')),
      cleanup: async () => {},
      close: async () => {},
    }
    await expect(
      runBackend(backend, { changeSets: source, nodeName: 'n', log: silentLog, signal: stop.signal }),
    ).rejects.toThrow('nft is missing')
  })
})
