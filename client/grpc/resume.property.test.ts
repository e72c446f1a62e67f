import { EventEmitter } from 'node:events'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import { localv1, silentLog } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClusterItems } from '../../core/sinks/api/cluster-watch.js'
import { noApiCounts } from '../../core/sinks/api/counters.js'
import type { Call } from '../../core/sinks/api/grpc/index.js'
import { ItemFrames } from '../../core/sinks/api/item-frames.js'
import { Joins } from '../../core/sinks/api/joins.js'
import { NodeItems } from '../../core/sinks/api/node-items.js'
import { Resuming } from '../../core/sinks/api/resuming.js'
import { localWatchHandler } from '../../core/sinks/api/watch-calls.js'
import type { Store } from '../../core/store/index.js'
import { syncedStore } from '../../core/testing/objects.js'
import { View } from '../../core/view/node-watch.js'
import { aWrite, nodeNames, type Write } from '../../core/view/testing/generators.js'
import { contentsOf, naiveExtras, naiveNodeView } from '../../core/view/testing/naive-view.js'
import { Turns } from '../../core/view/turns.js'
import { KnownState, type Operations } from './known-state.js'
import { WatchCall } from './stream.js'

// Whatever changed while a client was away, and whichever server it comes back to: what it knows is what a naive function makes of the
// store's contents. The client and the server are the real ones; what is between them is memory.

const extraSets = [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS]

/** A run of a server. */
function startServer(store: Store) {
  const view = new View(store, new Turns(1e9))
  const frames = new ItemFrames(silentLog)
  const resuming = new Resuming({ store, view, frames })
  return localWatchHandler({
    view,
    nodeItems: new NodeItems(view),
    clusterItems: new ClusterItems(view),
    frames,
    resuming,
    joins: new Joins(),
    log: silentLog,
    counters: noApiCounts(),
    onSent: () => {},
  })
}

/** One call in memory, from the client's side. It can be cut, and it counts what is sent. */
class MemoryCall extends EventEmitter implements Call {
  readonly path = '/localv1.Sets/Watch'
  readonly peer = { address: 'memory', subject: undefined }
  readonly #aborter = new AbortController()
  readonly #requests: Buffer[] = []
  #asks: (() => void) | undefined
  /** How many messages still come through. */
  messagesLeft = Number.POSITIVE_INFINITY

  get signal(): AbortSignal {
    return this.#aborter.signal
  }

  async nextRequest(): Promise<Buffer | undefined> {
    while (this.#requests.length === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => (this.#asks = resolve))
    }
    if (this.signal.aborted) throw this.signal.reason
    return this.#requests.shift()
  }

  /** The server answers. */
  async write(framed: Buffer): Promise<void> {
    for (let at = 0; at < framed.length && !this.signal.aborted; ) {
      const end = at + 5 + framed.readUInt32BE(at + 1)
      if (this.messagesLeft-- <= 0) return this.cancel()
      this.emit('data', framed.subarray(at + 5, end))
      at = end
    }
  }

  /** The client asks. */
  ask(request: Uint8Array): void {
    this.#requests.push(Buffer.from(request))
    this.#asks?.()
  }

  cancel(): void {
    if (this.signal.aborted) return
    this.#aborter.abort(new Error('The connection is lost'))
    this.#asks?.()
    this.emit('error', new Error('The connection is lost'))
  }
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
    const duplex = {
      on: connection.on.bind(connection),
      write: (bytes: Uint8Array) => connection.ask(bytes),
      cancel: () => connection.cancel(),
    } as unknown as ClientDuplexStream<Uint8Array, Uint8Array>
    this.#connection = connection
    this.isBack = true
    const nodeName = this.#nodeName
    const request = (known?: localv1.Known) =>
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName, extraSets, ...(known && { known }) }))
    this.#call = new WatchCall(duplex, request, this.known)
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
  writes: fc.array(aWrite, { maxLength: 4 }),
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
        const store = syncedStore(options)
        const other = startServer(store)
        let server = startServer(store)
        const client = new ResumingClient(nodeName)
        client.connect(server)
        await client.catchUp()
        for (const { meanwhile, writes, server: next, messages } of steps) {
          if (meanwhile === 'cut off') client.connect(server, messages)
          if (meanwhile === 'away') client.leave()
          await nextLoop()
          await nextLoop()
          update(store, writes)
          if (meanwhile !== 'away') await client.catchUp()
          if (next === 'restarted') server = startServer(store)
          client.connect(next === 'another' ? other : server)
          await client.catchUp()
          client.compare(store)
        }
        client.leave()
      },
    ),
    { numRuns: 60 },
  )
}, 300_000)

function update(store: Store, writes: readonly Write[]): void {
  store.update((tx) => {
    for (const write of writes) write(tx)
  })
}
