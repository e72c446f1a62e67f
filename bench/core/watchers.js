// Many watchers in one process of their own. Told by messages of the parent: { connect: n }, { ask }, { leave }.
// Reads frames without decoding them, so that what is measured is the server and not this.
import { connect } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'

const [authority, firstNode = '0'] = process.argv.slice(2)
const watchers = []

class Watcher {
  constructor(index) {
    this.syncs = 0
    this.pending = undefined
    this.request = framed(
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName: `node-${index}` })),
    )
    this.session = connect(`http://${authority}`, { settings: { initialWindowSize: 1 << 20 } })
    this.session.on('connect', () => this.session.setLocalWindowSize(1 << 22))
    this.session.on('error', (error) => process.send({ error: `watcher ${index}: ${error.message}` }))
    this.stream = this.session.request(
      { ':method': 'POST', ':path': '/localv1.Sets/Watch', 'content-type': 'application/grpc', te: 'trailers' },
      { endStream: false },
    )
    this.stream.on('data', (chunk) => this.read(chunk))
    this.stream.on('error', (error) => process.send({ error: `watcher ${index}: ${error.message}` }))
  }

  ask() {
    this.stream.write(this.request)
  }

  /** Finds each message's end, and the Sync among them: the only one whose first field is number 1. */
  read(chunk) {
    const data = this.pending ? Buffer.concat([this.pending, chunk]) : chunk
    this.pending = undefined
    let at = 0
    while (at + 5 <= data.length) {
      const end = at + 5 + data.readUInt32BE(at + 1)
      if (end > data.length) break
      if (data[at + 5] === 0x0a) this.synced()
      at = end
    }
    if (at < data.length) this.pending = data.subarray(at)
  }

  synced() {
    this.syncs++
    arrived()
  }
}

function framed(message) {
  const frame = Buffer.alloc(5 + message.length)
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, 5)
  return frame
}

let missing = 0
let firstAt = 0

function arrived() {
  const now = performance.timeOrigin + performance.now()
  if (firstAt === 0) firstAt = now
  if (--missing === 0) process.send({ all: now, first: firstAt })
}

process.on('message', ({ connect: count, ask, leave }) => {
  if (count) {
    missing = count
    firstAt = 0
    const from = watchers.length + Number(firstNode)
    for (let index = 0; index < count; index++) watchers.push(new Watcher(from + index))
    for (const watcher of watchers.slice(-count)) watcher.ask()
  }
  if (ask) {
    missing = watchers.length
    firstAt = 0
    for (const watcher of watchers) watcher.ask()
    // The requests must be on the server before the change is made.
    setTimeout(() => process.send({ asked: true }), 20 + watchers.length / 10)
  }
  if (leave) {
    for (const watcher of watchers.splice(0)) watcher.session.destroy()
    process.send({ left: true })
  }
})
process.send({ ready: true })
