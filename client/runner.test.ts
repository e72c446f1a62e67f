import { setImmediate as nextLoop } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { heapMb } from '../core/testing/heap.js'
import type { Backend, Changes, Runner } from './backend.js'
import type { ChangeSet, ChangeSetSource } from './change-set.js'
import { type Clock, type RunnerOptions, runBackend } from './runner.js'
import { ManualClock } from './testing/manual-clock.js'

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
    const services = new Map(
      names.map((name) => {
        const service = create(localv1.ServiceSchema, { namespace: 'd', name })
        return [`d/${name}`, { service, endpoints: [] }] as const
      }),
    )
    queue.push({ reset: false, services, node: undefined, serviceCidrs: new Map(), triggers: [] })
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
  const clock = new ManualClock()
  const { source, push } = manualSource()
  const syncs: Sync[] = []
  /** The services that changes were queued for, in order. */
  const queued: string[] = []
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
    clock,
    onQueued: ({ services }) => queued.push(...services.keys()),
    ...options,
  })
  return { push, syncs, queued, stop, running, clock, runner: () => runner as Runner }
}

/** Gives everything that can happen without the clock the time to happen. */
async function until(holds: () => boolean): Promise<void> {
  for (let loops = 0; !holds(); loops++) {
    if (loops > 100_000) throw new Error('in vain')
    await nextLoop()
  }
}

const aFewLoops = async () => {
  for (let loops = 0; loops < 20; loops++) await nextLoop()
}

describe('a backend', () => {
  test('is called with everything first, and then with what changed', async () => {
    const { push, syncs } = start()
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
    const { push, syncs, queued, clock } = start(
      () => {
        if (failing) throw new Error('no')
      },
      { retryMs: 60 },
    )
    push('a')
    await until(() => syncs.length === 1 && clock.untilNext === 60)
    push('b')
    await until(() => queued.includes('d/b') && clock.untilNext === 60)
    clock.advance(59)
    await aFewLoops()
    expect(syncs).toHaveLength(1)
    failing = false
    clock.advance(1)
    await until(() => syncs.length === 2)
    expect(syncs[1]).toEqual({ services: ['d/a', 'd/b'], changed: ['d/a', 'd/b'], full: true })
    push('c')
    await until(() => syncs.length === 3)
    expect(syncs[2]).toMatchObject({ changed: ['d/c'], full: false })
  })

  test('that fails on a small change is called again from the full view', async () => {
    const { push, syncs, clock } = start((count) => {
      if (count === 2) throw new Error('no')
    })
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await until(() => syncs.length === 2 && clock.untilNext === 10)
    clock.advance(10)
    await until(() => syncs.length === 3)
    expect(syncs.slice(1)).toEqual([
      { services: ['d/a', 'd/b'], changed: ['d/b'], full: false },
      { services: ['d/a', 'd/b'], changed: ['d/b'], full: true },
    ])
  })

  test('that keeps failing is called ever more rarely', async () => {
    const { push, syncs, clock } = start(
      () => {
        throw new Error('no')
      },
      { retryMs: 20, maxRetryMs: 80 },
    )
    push('a')
    const pauses: (number | undefined)[] = []
    for (let count = 1; count <= 5; count++) {
      await until(() => syncs.length === count && clock.untilNext !== undefined)
      pauses.push(clock.untilNext)
      clock.advance(clock.untilNext as number)
    }
    expect(pauses).toEqual([20, 40, 80, 80, 80])
  })

  test('that is slow gets what changed meanwhile in one go', async () => {
    let release = () => {}
    const { push, syncs, queued } = start((count) =>
      count === 1
        ? new Promise<void>((resolve) => {
            release = resolve
          })
        : undefined,
    )
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await aFewLoops()
    expect(syncs).toHaveLength(1)
    release()
    await until(() => queued.includes('d/b') && syncs.length === 2)
    expect(syncs[1]).toMatchObject({ changed: ['d/b'], full: false })
  })

  test('is left alone for the least interval', async () => {
    const { push, syncs, queued, clock } = start(() => {}, { minSyncIntervalMs: 80 })
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await until(() => queued.includes('d/b') && clock.untilNext === 80)
    clock.advance(40)
    push('c')
    await until(() => queued.includes('d/c') && clock.untilNext === 40)
    expect(syncs).toHaveLength(1)
    clock.advance(40)
    await until(() => syncs.length === 2)
    expect(syncs[1]).toMatchObject({ changed: ['d/b', 'd/c'] })
  })

  test('can ask for a full sync, and gets one periodically when that is wanted', async () => {
    const asked = start()
    asked.push('a')
    await until(() => asked.syncs.length === 1)
    asked.runner().requestFullSync('drift')
    await until(() => asked.syncs.length === 2)
    expect(asked.syncs[1]).toEqual({ services: ['d/a'], changed: [], full: true })
    expect(asked.clock.untilNext).toBeUndefined()

    const { push, syncs, clock } = start(() => {}, { fullSyncIntervalMs: 30 })
    push('a')
    for (let count = 1; count <= 3; count++) {
      await until(() => syncs.length === count && clock.untilNext === 30)
      clock.advance(30)
    }
    expect(syncs[2]).toMatchObject({ full: true, changed: [] })
  })

  test('that asks for a full sync while one runs gets another one', async () => {
    const { push, syncs, runner } = start((count) => {
      if (count === 1) runner().requestFullSync('drift')
    })
    push('a')
    await until(() => syncs.length === 2)
    expect(syncs[1]).toMatchObject({ full: true })
  })

  test('is asked again, with nothing new, when that is wanted', async () => {
    const { push, syncs, clock } = start(() => {}, { syncIntervalMs: 20 })
    push('a')
    for (let count = 1; count <= 3; count++) {
      await until(() => syncs.length === count && clock.untilNext === 20)
      clock.advance(20)
    }
    expect(syncs.slice(0, 3)).toEqual([
      { services: ['d/a'], changed: ['d/a'], full: true },
      { services: ['d/a'], changed: [], full: false },
      { services: ['d/a'], changed: [], full: false },
    ])
  })

  test('that is asked again for ever costs no memory', async () => {
    let count = 0
    let now = 0
    const clock: Clock = {
      now: () => now,
      after: (ms, callback) => {
        const timer = setImmediate(() => {
          now += ms
          callback()
        })
        return () => clearImmediate(timer)
      },
    }
    const forgetful = () => {
      syncs.length = 0
      count++
    }
    const { push, syncs } = start(forgetful, { syncIntervalMs: 1, clock })
    push('a')
    await until(() => count > 2_000)
    const before = heapMb()
    const end = count + 20_000
    await until(() => count > end)
    expect(heapMb() - before).toBeLessThan(2)
  })

  test('reports when a sync began and how long it took', async () => {
    const reports: { startedAtMs: number; durationMs: number }[] = []
    const { push, clock } = start(() => clock.advance(7), { onSync: (report) => reports.push(report) })
    const startedAtMs = clock.now()
    push('a')
    await until(() => reports.length === 1)
    expect(reports[0]).toMatchObject({ startedAtMs, durationMs: 7 })
  })

  test('goes on when those who look on fail', async () => {
    const fail = () => {
      throw new Error('no more memory for metrics')
    }
    const { push, syncs } = start(() => {}, { onSync: fail, onQueued: fail })
    push('a')
    await until(() => syncs.length === 1)
    push('b')
    await until(() => syncs.length === 2)
    expect(syncs[1]).toEqual({ services: ['d/a', 'd/b'], changed: ['d/b'], full: false })
  })

  test('is left in place when the run is stopped', async () => {
    const { push, syncs, stop, running } = start()
    push('a')
    await until(() => syncs.length === 1)
    stop.abort()
    await running
    push('b')
    await aFewLoops()
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
