// Watchers that come back, many in one process. What they have is worked out from a cluster like the server's instead of being downloaded: a thousand
// downloads would take longer than everything that is measured. Told by messages of the parent: { connect: n, server }, { leave }.
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
  constructor(state, authority, { known, wants }) {
    this.state = state
    this.wants = wants
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
      this.state.position = position
      if (!this.isDone) {
        this.isDone = true
        if (!resumed && this.wants === 'resume') process.send({ error: `${this.state.nodeName} could not resume` })
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

let states = []
let watchers = []
let missing = 0

function arrived() {
  if (--missing > 0) return
  const all = performance.timeOrigin + performance.now()
  // What was written last may not be counted yet.
  setImmediate(() => {
    const bytes = watchers.map((watcher) => watcher.bytes).sort((a, b) => a - b)
    const items = watchers.map((watcher) => watcher.items).sort((a, b) => a - b)
    process.send({ all, mostBytes: bytes.at(-1), mostItems: items.at(-1) })
  })
}

process.on('message', ({ make, come, leave }) => {
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
  if (leave) {
    for (const { session } of watchers.splice(0)) session.destroy()
    process.send({ left: true })
  }
})
process.on('disconnect', () => process.exit())
process.send({ ready: true })
