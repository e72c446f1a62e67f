// A watch over HTTP/2 with as little work as possible: what thousands of nodes do on machines of their own must not be measured here as if it were the server's.
// It knows what a server of kpng sends, and nothing else.
import { connect } from 'node:net'

const [data, headers, rstStream, settings, ping, goaway, windowUpdate] = [0, 1, 3, 4, 6, 7, 8]
const ack = 1
const stream = 1
const maxFrame = 16_384
const largestWindow = 2 ** 31 - 1

function frameHeader(length, type, flags, id) {
  const header = Buffer.alloc(9)
  header.writeUIntBE(length, 0, 3)
  header[3] = type
  header[4] = flags
  header.writeUInt32BE(id, 5)
  return header
}

const frame = (type, flags, id, payload) => Buffer.concat([frameHeader(payload.length, type, flags, id), payload])

const literal = (name, value) =>
  Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)])

function uint32(value) {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** What begins every connection: the server may send as much as it likes, and one call is opened. */
const opening = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(largestWindow)])),
  frame(windowUpdate, 0, 0, uint32(largestWindow - 65_535)),
  frame(
    headers,
    4,
    stream,
    Buffer.concat(
      Object.entries({
        ':method': 'POST',
        ':scheme': 'http',
        ':path': '/localv1.Sets/Watch',
        ':authority': 'localhost',
        'content-type': 'application/grpc',
        te: 'trailers',
      }).map(([name, value]) => literal(name, value)),
    ),
  ),
])
const settingsAck = frame(settings, ack, 0, Buffer.alloc(0))

/** A message as a request: framed for gRPC, then for HTTP/2. Many watches may send the same. */
export function requestOf(message) {
  const body = Buffer.concat([Buffer.from([0]), uint32(message.length), message])
  const frames = []
  for (let at = 0; at < body.length; at += maxFrame)
    frames.push(frame(data, 0, stream, body.subarray(at, at + maxFrame)))
  return Object.assign(Buffer.concat(frames), { dataBytes: body.length })
}

export class RawWatch {
  /** @param receive is given each message */
  constructor(authority, first, receive, fail) {
    const [host, port] = authority.split(':')
    this.receive = receive
    this.fail = fail
    this.unread = undefined
    this.message = undefined
    // What the server takes before it says more. It does so in time for what is sent here, so nothing waits; it is counted to be sure.
    this.window = 65_535
    this.socket = connect({ port: Number(port), host, noDelay: true })
    this.socket.on('data', (chunk) => this.read(chunk))
    this.socket.on('error', (error) => fail(error.message))
    this.window -= first.dataBytes
    this.socket.write(Buffer.concat([opening, first]))
  }

  send(request) {
    this.window -= request.dataBytes
    if (this.window < 0) return this.fail('more is sent than the server takes')
    this.socket.write(request)
  }

  get bytes() {
    return this.socket.bytesRead + this.socket.bytesWritten
  }

  close() {
    this.socket.destroy()
  }

  read(chunk) {
    const bytes = this.unread ? Buffer.concat([this.unread, chunk]) : chunk
    let at = 0
    while (at + 9 <= bytes.length) {
      const end = at + 9 + bytes.readUIntBE(at, 3)
      if (end > bytes.length) break
      this.take(bytes[at + 3], bytes[at + 4], bytes.readUInt32BE(at + 5), bytes.subarray(at + 9, end))
      at = end
    }
    this.unread = at < bytes.length ? bytes.subarray(at) : undefined
  }

  take(type, flags, id, payload) {
    if (type === data) this.takeData(payload)
    else if (type === settings && !(flags & ack)) this.socket.write(settingsAck)
    else if (type === ping && !(flags & ack)) this.socket.write(frame(ping, ack, 0, payload))
    else if (type === windowUpdate && id === stream) this.window += payload.readUInt32BE(0)
    else if (type === rstStream || type === goaway) this.fail(`the server ended the call (frame ${type})`)
  }

  takeData(payload) {
    const bytes = this.message ? Buffer.concat([this.message, payload]) : payload
    let at = 0
    while (at + 5 <= bytes.length) {
      const end = at + 5 + bytes.readUInt32BE(at + 1)
      if (end > bytes.length) break
      this.receive(bytes.subarray(at + 5, end))
      at = end
    }
    this.message = at < bytes.length ? bytes.subarray(at) : undefined
  }
}
