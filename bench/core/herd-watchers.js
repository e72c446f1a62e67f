// Watchers that come back, many in one process. What they have is worked out from a cluster like the server's instead of being downloaded: a thousand
// downloads would take longer than everything that is measured. Told by messages of the parent.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { View } from '@kpng/core/view'
import { ItemFrames } from '../../core/dist/sinks/api/item-frames.js'
import { NodeItems } from '../../core/dist/sinks/api/node-items.js'
import { StateDigests } from '../../core/dist/sinks/api/state-digests.js'
import { makeCluster } from './cluster.js'
import { RawWatch, requestOf } from './raw-watch.js'

const [services, endpoints, nodes, firstNode] = process.argv.slice(2).map(Number)

/** So many connect in one turn of the event loop: what one has to say first is not kept waiting by the others, as on machines of their own. */
const connectsPerTurn = 20

function finish(work) {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/** What a node has: the digest of everything, and of buckets. */
class State {
  constructor(index, items, digests) {
    this.nodeName = `node-${index}`
    const watch = items.watch({ nodeName: this.nodeName })
    const { whole } = watch.poll()
    watch.close()
    this.digest = finish(digests.whole(whole)).digest.toBytes()
    this.buckets = finish(digests.buckets(whole)).toBytes()
  }

  request(known) {
    const { nodeName } = this
    return requestOf(
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName, ...(known && { known }) })),
    )
  }
}

function makeStates(count) {
  const nodeItems = new NodeItems(new View(makeCluster({ services, endpoints, nodes }).store))
  const digests = new StateDigests(new ItemFrames(silentLog))
  return Array.from({ length: count }, (_, index) => new State(firstNode + index, nodeItems, digests))
}

class Watcher {
  constructor(state, authority, known) {
    this.state = state
    this.isDone = false
    this.hasResumed = false
    this.items = 0
    this.nextRequest = state.request()
    this.connect(authority, state.request(known))
  }

  /** If the server's queue of connections is full, the kernel may turn one away: nodes try again, so it does too. */
  connect(authority, first) {
    const failed = (why) => {
      if (this.hasResumed || ++retries > maxRetries) process.send({ error: `${this.state.nodeName}: ${why}` })
      else setTimeout(() => this.connect(authority, first), 100)
    }
    this.watch = new RawWatch(authority, first, (bytes) => this.receive(bytes), failed)
  }

  receive(bytes) {
    if (bytes[0] === 0x12 || bytes[0] === 0x1a) this.items++
    else if (bytes[0] === 0x2a) this.sayBuckets(fromBinary(localv1.OpItemSchema, bytes).op.value.count)
    else if (bytes[0] === 0x0a) this.complete(bytes)
  }

  sayBuckets(count) {
    const { buckets } = this.state
    if (buckets.length !== 8 * count)
      throw new Error(`${count} buckets are asked for, ${buckets.length / 8} would suit`)
    this.watch.send(this.state.request({ buckets }))
  }

  complete(bytes) {
    const { position, resumed } = syncOf(bytes)
    if (samples) samples.push([Number(this.state.position?.revision ?? 0n), Number(position.revision), clock()])
    this.state.position = position
    if (!this.isDone) {
      this.isDone = true
      if (!resumed && !this.hasResumed) process.send({ error: `${this.state.nodeName} could not resume` })
      this.hasResumed = true
      arrived()
    }
    this.watch.send(this.nextRequest)
  }
}

/** All watchers that are told the same get the same bytes: they are decoded once. */
let lastSync
function syncOf(bytes) {
  if (!lastSync?.bytes.equals(bytes)) {
    lastSync = { bytes: Buffer.from(bytes), value: fromBinary(localv1.OpItemSchema, bytes).op.value }
  }
  return lastSync.value
}

const clock = () => performance.timeOrigin + performance.now()

/** What each change set was: the revision before, the revision, the time. */
let samples

/** From the oldest change in a change set to the moment at which it was there, of all change sets. */
function lagsOf(changedAt) {
  const revisions = new Map(changedAt)
  const lags = []
  for (const [before, revision, at] of samples) {
    for (let oldest = before + 1; oldest <= revision; oldest++) {
      if (!revisions.has(oldest)) continue
      lags.push(at - revisions.get(oldest))
      break
    }
  }
  lags.sort((a, b) => a - b)
  const part = (share) => lags[Math.min(lags.length - 1, Math.floor(lags.length * share))]
  return { count: lags.length, p50: part(0.5), p99: part(0.99), max: lags.at(-1) }
}

let states = []
let watchers = []
let missing = 0
let retries = 0
const maxRetries = 1000
let cpu = process.cpuUsage()

function arrived() {
  if (--missing > 0) return
  const all = clock()
  // What was written last may not be counted yet.
  setImmediate(() => {
    const { user, system } = process.cpuUsage(cpu)
    const most = (of) => watchers.reduce((most, watcher) => Math.max(most, of(watcher)), 0)
    const [mostBytes, mostItems] = [most(({ watch }) => watch.bytes), most(({ items }) => items)]
    process.send({ all, mostBytes, mostItems, retries, cpuMs: (user + system) / 1000 })
  })
}

async function comeBack({ server }) {
  missing = states.length
  retries = 0
  watchers = []
  for (const state of states) {
    const { digest } = state
    watchers.push(new Watcher(state, server, { digest }))
    if (watchers.length % connectsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

process.on('message', ({ make, come, leave, expect, record, lagsOf: changedAt }) => {
  if (make) {
    states = makeStates(make)
    process.send({ made: true })
  }
  if (come || expect) cpu = process.cpuUsage()
  if (come) void comeBack(come)
  if (expect) {
    missing = watchers.length
    for (const watcher of watchers) watcher.isDone = false
  }
  if (record) samples = []
  if (changedAt) {
    process.send({ lags: lagsOf(changedAt) })
    samples = undefined
  }
  if (leave) {
    for (const { watch } of watchers.splice(0)) watch.close()
    process.send({ left: true })
  }
})
process.on('disconnect', () => process.exit())
process.send({ ready: true })
