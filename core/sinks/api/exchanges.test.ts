import { readFileSync } from 'node:fs'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { KnownState, type Operations } from '../../../client/grpc/known-state.js'
import { WatchCall } from '../../../client/grpc/stream.js'
import { RelayedState } from '../../sources/api/relayed-state.js'
import { Skips } from '../../sources/skips.js'
import { Store } from '../../store/index.js'
import { View } from '../../view/node-watch.js'
import { Turns } from '../../view/schedule.js'
import { noApiCounts } from './counters.js'
import { storeOfSteps } from './testing/exchange-states.js'
import { MemoryCall } from './testing/memory-call.js'
import { globalWatchHandler, localWatchHandler } from './watch-calls.js'
import { watchSettings } from './watching.js'

// What nodes and relays of kpng 0.1.0, and clients of the Go lineage, said to a core of 0.1.0, and what it answered, byte by byte. `step` changes the
// cluster, `connect` is a new connection to a core that was restarted, `>` is a request and `<` an answer. Both must still be understood: the requests by
// the core of today, the answers by the nodes and relays of today.

interface Connection {
  /** Requests, each with the answers to it. */
  readonly turns: { readonly step: string | undefined; readonly asked: Buffer; readonly answers: Buffer[] }[]
}

function recorded(name: string): Connection[] {
  const text = readFileSync(new URL(`testing/exchanges/${name}-0.1.0.txt`, import.meta.url), 'utf8')
  const connections: Connection[] = []
  let step: string | undefined
  for (const line of text.trim().split('\n')) {
    const [, word = '', rest = ''] = /^(\S+) ?(.*)$/.exec(line) ?? []
    const bytes = Buffer.from(rest, 'hex')
    if (word === 'step') step = rest
    else if (word === 'connect') connections.push({ turns: [] })
    else if (word === '<') connections.at(-1)?.turns.at(-1)?.answers.push(bytes)
    else {
      connections.at(-1)?.turns.push({ step, asked: bytes, answers: [] })
      step = undefined
    }
  }
  return connections
}

/** A run of a core. */
function startCore(store: Store, handler: typeof localWatchHandler): MemoryCall {
  const call = new MemoryCall()
  const view = new View(store, new Turns(1e9))
  const settings = watchSettings(view, { log: silentLog, counters: noApiCounts(), onSent: () => {} })
  void handler(settings)(call).catch(() => {})
  return call
}

/** Without what differs from run to run, and without what 0.1.0 does not read. */
function comparable(bytes: Buffer): unknown {
  const { op } = fromBinary(localv1.OpItemSchema, bytes)
  if (op.case !== 'sync') return bytes.toString('hex')
  const { position, resumed } = op.value
  return {
    saysPosition: position !== undefined,
    resumed: resumed && { bucketCount: resumed.bucketCount, buckets: resumed.buckets },
  }
}

const ofNodes = { handler: localWatchHandler, schema: localv1.WatchReqSchema }
const ofRelays = { handler: globalWatchHandler, schema: globalv1.GlobalWatchReqSchema }

test.each([
  ['node', localWatchHandler],
  ['node-of-go', localWatchHandler],
  ['relay', globalWatchHandler],
  ['relay-of-go', globalWatchHandler],
] as const)('today’s core answers a %s of 0.1.0 as its own core did', async (name, handler) => {
  const { store, apply } = storeOfSteps()
  for (const { turns } of recorded(name)) {
    let call: MemoryCall | undefined
    const answers: Buffer[] = []
    for (const { step, asked, answers: expected } of turns) {
      if (step) apply(step)
      if (!call) {
        call = startCore(store, handler)
        call.on('error', () => {})
        call.on('data', (bytes: Buffer) => answers.push(bytes))
      }
      answers.splice(0)
      call.ask(asked)
      while (answers.length < expected.length) await nextLoop()
      expect(answers.map(comparable)).toEqual(expected.map(comparable))
    }
    call?.cancel()
  }
})

/** What a client of today makes of the recorded answers, connection by connection. It must ask as the recorded client did. */
async function* replayed(name: string, { schema }: typeof ofNodes | typeof ofRelays): AsyncGenerator<Told> {
  const known = new KnownState()
  for (const { turns } of recorded(name)) {
    const call = new MemoryCall()
    const waiting = [...turns]
    const steps: string[] = []
    const [first] = turns
    const given = fromBinary(schema as typeof localv1.WatchReqSchema, first?.asked ?? Buffer.alloc(0))
    const request = (has?: localv1.Known) => {
      const { known: _, $unknown: __, ...usual } = given
      return toBinary(
        schema as typeof localv1.WatchReqSchema,
        create(schema as typeof localv1.WatchReqSchema, { ...usual, ...(has && { known: has }) }),
      )
    }
    call.on('error', () => {})
    call.on('asked', (bytes: Uint8Array) => {
      const turn = waiting.shift()
      if (!turn) return
      if (turn.step) steps.push(turn.step)
      if (!name.endsWith('-of-go')) expect(asComparable(schema, bytes)).toEqual(asComparable(schema, turn.asked))
      queueMicrotask(() => {
        for (const answer of turn.answers) call.emit('data', answer)
      })
    })
    const watch = new WatchCall(call.stream, request, known)
    while (waiting.length > 0) yield { operations: await watch.next(), steps: steps.splice(0) }
    call.cancel()
  }
}

interface Told {
  readonly operations: Operations
  /** What happened in the cluster before. */
  readonly steps: readonly string[]
}

/** The digests, and nothing of the position: a core of 0.1.0 must not use it. */
function asComparable(schema: typeof ofNodes.schema | typeof ofRelays.schema, bytes: Uint8Array): unknown {
  const { known, ...rest } = fromBinary(schema as typeof localv1.WatchReqSchema, bytes)
  const hex = (field: Uint8Array = new Uint8Array()) => Buffer.from(field).toString('hex')
  return { ...rest, digest: hex(known?.digest), buckets: hex(known?.buckets) }
}

test.each(['relay', 'relay-of-go'])(
  'a relay of today knows what a core of 0.1.0 knows (recorded as %s), and serves it to nodes of 0.1.0',
  async (name) => {
    const { store: upstream, apply } = storeOfSteps()
    const relayed = new Store()
    const state = new RelayedState(new Skips(silentLog))
    for await (const { operations, steps } of replayed(name, ofRelays)) {
      for (const step of steps) apply(step)
      relayed.update((tx) => {
        state.apply(operations, tx)
        tx.setSynced('services', 'endpoints', 'nodes')
      })
      expect(await itemsFor(name, relayed)).toEqual(await itemsFor(name, upstream))
    }
  },
)

test.each(['node', 'node-of-go'])(
  'a node of today knows what a core of 0.1.0 told it (recorded as %s)',
  async (name) => {
    const { store, apply } = storeOfSteps()
    const items = new Map<string, string>()
    for await (const { operations, steps } of replayed(name, ofNodes)) {
      for (const step of steps) apply(step)
      if (operations.reset) items.clear()
      for (const { ref, bytes } of operations.sets)
        items.set(`${ref?.set} ${ref?.path}`, Buffer.from(bytes).toString('hex'))
      for (const { set, path } of operations.deletes) expect(items.delete(`${set} ${path}`)).toBe(true)
      expect([...items].sort()).toEqual(await itemsFor(name, store))
    }
  },
)

/** What today's core tells a node: `set path` and the encoded item. Clients of the Go lineage know services and endpoints only. */
async function itemsFor(name: string, store: Store): Promise<[string, string][]> {
  const call = startCore(store, localWatchHandler)
  const items: [string, string][] = []
  const extraSets = name.endsWith('-of-go') ? [] : [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS]
  const synced = new Promise<void>((resolve) => {
    call.on('data', (bytes: Buffer) => {
      const { op } = fromBinary(localv1.OpItemSchema, bytes)
      if (op.case === 'sync') resolve()
      if (op.case === 'set')
        items.push([`${op.value.ref?.set} ${op.value.ref?.path}`, Buffer.from(op.value.bytes).toString('hex')])
    })
  })
  call.on('error', () => {})
  call.ask(toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName: 'node-a', extraSets })))
  await synced
  call.cancel()
  return items.sort()
}
