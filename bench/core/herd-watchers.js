// Watchers that come back, many in one process. What they have is worked out from a cluster like the server's instead of being downloaded: a thousand
// downloads would take longer than everything that is measured. Told by messages of the parent.
import { connect } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { View } from '@kpng/core/view'
import { ItemFrames } from '../../core/dist/sinks/api/item-frames.js'
import { StateDigests } from '../../core/dist/sinks/api/state-digests.js'
import { makeCluster } from './cluster.js'

const [services, endpoints, nodes, firstNode] = process.argv.slice(2).map(Number)
const { store } = makeCluster({ services, endpoints, nodes })
const view = new View(store)
const digests = new StateDigests(new ItemFrames(silentLog))

function finish(work) {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/** What a node has: the digest of everything, and of buckets. */
class State {
  constructor(index) {
    this.nodeName = `node-${index}`
    const watch = view.watchNode({ nodeName: this.nodeName })
    this.whole = watch.poll().whole
    watch.close()
    this.digest = finish(digests.whole(this.whole)).digest.toBytes()
  }

  buckets(count) {
    const buckets = finish(digests.buckets(this.whole))
    if (buckets.buckets !== count) throw new Error(`${count} buckets are asked for, ${buckets.buckets} would suit`)
    return buckets.toBytes()
  }
}

class Watcher {
  constructor(state, authority, { known }) {
    this.state = state
    this.isDone = false
    this.items = 0
    this.session = connect(`http://${authority}`, { settings: { initialWindowSize: 1 << 20 } })
    this.session.on('error', (error) => process.send({ error: `${state.nodeName}: ${error.message}` }))
    this.stream = this.session.request(
      { ':method': 'POST', ':path': '/localv1.Sets/Watch', 'content-type': 'application/grpc', te: 'trailers' },
      { endStream: false },
    )
    this.stream.on('data', (chunk) => this.read(chunk))
    this.stream.on('error', () => {})
    this.ask(known)
  }

  ask(known) {
    const message = toBinary(
      localv1.WatchReqSchema,
      create(localv1.WatchReqSchema, { nodeName: this.state.nodeName, ...(known && { known }) }),
    )
    const frame = Buffer.alloc(5 + message.length)
    frame.writeUInt32BE(message.length, 1)
    frame.set(message, 5)
    this.stream.write(frame)
  }

  read(chunk) {
    const data = this.pending ? Buffer.concat([this.pending, chunk]) : chunk
    this.pending = undefined
    let at = 0
    while (at + 5 <= data.length) {
      const end = at + 5 + data.readUInt32BE(at + 1)
      if (end > data.length) break
      this.receive(data.subarray(at + 5, end))
      at = end
    }
    if (at < data.length) this.pending = data.subarray(at)
  }

  receive(bytes) {
    if (bytes[0] === 0x12 || bytes[0] === 0x1a) this.items++
    else if (bytes[0] === 0x2a) {
      const { count } = fromBinary(localv1.OpItemSchema, bytes).op.value
      this.ask({ buckets: this.state.buckets(count) })
    } else if (bytes[0] === 0x0a) {
      const { position, resumed } = fromBinary(localv1.OpItemSchema, bytes).op.value
      if (samples) samples.push([Number(this.state.position?.revision ?? 0n), Number(position.revision), clock()])
      this.state.position = position
      if (!this.isDone) {
        this.isDone = true
        if (!resumed && !this.hasResumed) process.send({ error: `${this.state.nodeName} could not resume` })
        this.hasResumed = true
        arrived()
      }
      // The next change.
      this.ask()
    }
  }

  get bytes() {
    const { socket } = this.session
    return (socket?.bytesRead ?? 0) + (socket?.bytesWritten ?? 0)
  }
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

function arrived() {
  if (--missing > 0) return
  const all = clock()
  // What was written last may not be counted yet.
  setImmediate(() => {
    const bytes = watchers.map((watcher) => watcher.bytes).sort((a, b) => a - b)
    const items = watchers.map((watcher) => watcher.items).sort((a, b) => a - b)
    process.send({ all, mostBytes: bytes.at(-1), mostItems: items.at(-1) })
  })
}

process.on('message', ({ make, come, leave, expect, record, lagsOf: changedAt }) => {
  if (make) {
    states = Array.from({ length: make }, (_, index) => new State(firstNode + index))
    process.send({ made: true })
  }
  if (come) {
    missing = states.length
    watchers = states.map((state) => {
      const { digest, position } = state
      return new Watcher(state, come.server, {
        known: { digest, ...(come.withPosition && { position }) },
        wants: 'resume',
      })
    })
  }
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
    for (const { session } of watchers.splice(0)) session.destroy()
    process.send({ left: true })
  }
})
process.on('disconnect', () => process.exit())
process.send({ ready: true })
