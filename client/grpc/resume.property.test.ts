import { setImmediate as nextLoop } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noApiCounts } from '../../core/sinks/api/counters.js'
import { MemoryCall } from '../../core/sinks/api/testing/memory-call.js'
import { localWatchHandler } from '../../core/sinks/api/watch-calls.js'
import { watchSettings } from '../../core/sinks/api/watching.js'
import type { Store } from '../../core/store/index.js'
import { syncedStore } from '../../core/testing/objects.js'
import { View } from '../../core/view/node-watch.js'
import { Turns } from '../../core/view/schedule.js'
import { aWrite, nodeNames, type Write } from '../../core/view/testing/generators.js'
import { contentsOf, naiveExtras, naiveNodeView } from '../../core/view/testing/naive-view.js'
import { KnownState, type Operations } from './known-state.js'
import { WatchCall } from './stream.js'

// Whatever changed while a client was away, and whichever server it comes back to: what it knows is what a naive function makes of the
// store's contents. The client and the server are the real ones; what is between them is memory.

const extraSets = [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS]

/** A run of a server. */
function startServer(store: Store) {
  const view = new View(store, new Turns(1e9))
  return localWatchHandler(watchSettings(view, { log: silentLog, counters: noApiCounts(), onSent: () => {} }))
}

/** A client that connects again and again and keeps what it has. */
class ResumingClient {
  readonly items = new Map<string, string>()
  readonly known = new KnownState()
  readonly #nodeName: string
  #connection: MemoryCall | undefined
  #call: WatchCall | undefined
  #next: Promise<Operations> | undefined
  hasState = false
  /** The next thing that it is told is the first one of a connection. */
  isBack = false

  constructor(nodeName: string) {
    this.#nodeName = nodeName
  }

  connect(handler: ReturnType<typeof startServer>, messages = Number.POSITIVE_INFINITY): void {
    this.#connection?.cancel()
    const connection = new MemoryCall()
    connection.messagesLeft = messages
    this.#connection = connection
    this.isBack = true
    const nodeName = this.#nodeName
    const request = (known?: localv1.Known) =>
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName, extraSets, ...(known && { known }) }))
    this.#call = new WatchCall(connection.stream, request, this.known)
    void handler(connection).catch(() => {})
    this.#next = this.#call.next()
    this.#next.catch(() => {})
  }

  /** Takes everything that the server has for it now. */
  async catchUp(): Promise<void> {
    for (let quietLoops = 0; quietLoops < 5; quietLoops++) {
      this.#next ??= this.#call?.next()
      const operations = await Promise.race([this.#next?.catch(() => 'lost' as const), nextLoop()])
      if (operations === 'lost') return
      if (!operations) continue
      this.#next = undefined
      this.#apply(operations)
      quietLoops = 0
    }
  }

  #apply({ reset, sets, deletes }: Operations): void {
    // One that is connected and lags too far behind is told everything, as always.
    if (this.isBack) expect(reset, 'a client that comes back keeps what it has').toBe(!this.hasState)
    if (reset) this.items.clear()
    this.isBack = false
    for (const { ref, bytes } of sets) {
      const key = `${ref?.set} ${ref?.path}`
      const hex = Buffer.from(bytes).toString('hex')
      expect(this.items.get(key), `${key} is told again although nothing in it changed`).not.toBe(hex)
      this.items.set(key, hex)
    }
    for (const { set, path } of deletes) {
      expect(this.items.delete(`${set} ${path}`), `${path} is deleted although it is not known`).toBe(true)
    }
    this.hasState = true
  }

  compare(store: Store): void {
    const contents = contentsOf(store)
    const views = [...this.items].filter(([key]) => /^[12] /.test(key))
    expect(new Map(views.sort())).toEqual(new Map([...naiveNodeView(contents, this.#nodeName)].sort()))
    const extras = [...this.items.keys()].filter((key) => !/^[12] /.test(key))
    expect(extras.sort()).toEqual(naiveExtras(contents, this.#nodeName).sort())
  }

  leave(): void {
    this.#connection?.cancel()
  }
}

const aStep = fc.record({
  /** Where the client is before the writes: connected, away, or cut off in the middle of what it is told next. */
  meanwhile: fc.constantFrom('connected', 'away', 'cut off'),
  /** After a long outage most of the state is another one. */
  writes: fc.oneof(
    { weight: 4, arbitrary: fc.array(aWrite, { maxLength: 4 }) },
    { weight: 1, arbitrary: fc.array(aWrite, { minLength: 50, maxLength: 80 }) },
  ),
  /** Whose cluster they happen in. */
  where: fc.constantFrom('everywhere', 'everywhere', 'here', 'there'),
  /** Which server it then talks to. */
  server: fc.constantFrom('the same', 'the same', 'restarted', 'another'),
  messages: fc.integer({ min: 0, max: 3 }),
})

test('a client that comes back knows what a new client is told, whatever changed and whichever server it comes back to', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aStep, { minLength: 1, maxLength: 8 }),
      fc.constantFrom(...nodeNames, 'unknown'),
      fc.constantFrom({}, { maxSupersededEndpoints: 160 }),
      async (steps, nodeName, options) => {
        // Two servers with stores of their own, which need not agree.
        let [here, there] = [options, options].map((each) => {
          const store = syncedStore(each)
          return { store, server: startServer(store) }
        }) as [Core, Core]
        const client = new ResumingClient(nodeName)
        client.connect(here.server)
        await client.catchUp()
        for (const { meanwhile, writes, where, server: next, messages } of steps) {
          if (meanwhile === 'cut off') client.connect(here.server, messages)
          if (meanwhile === 'away') client.leave()
          await nextLoop()
          await nextLoop()
          if (where !== 'there') update(here.store, writes)
          if (where !== 'here') update(there.store, writes)
          if (meanwhile !== 'away') await client.catchUp()
          if (next === 'restarted') here = { ...here, server: startServer(here.store) }
          if (next === 'another') [here, there] = [there, here]
          client.connect(here.server)
          await client.catchUp()
          client.compare(here.store)
        }
        client.leave()
      },
    ),
    { numRuns: 60 },
  )
}, 300_000)

interface Core {
  readonly store: Store
  readonly server: ReturnType<typeof startServer>
}

function update(store: Store, writes: readonly Write[]): void {
  store.update((tx) => {
    for (const write of writes) write(tx)
  })
}
