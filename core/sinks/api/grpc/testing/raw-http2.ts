import { connect, type Socket } from 'node:net'
import { afterTest } from './server.js'

/** HTTP/2 frame types, as RFC 9113 numbers them. */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
} as const

export interface RawFrame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/**
 * A client that sends exactly the frames it is told to and answers nothing by itself, not even a PING: for what a well-behaved
 * library will not do.
 */
export class RawHttp2 {
  readonly socket: Socket
  readonly frames: RawFrame[] = []
  closed = false
  #unread: Buffer = Buffer.alloc(0)

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.closed = true
    })
    this.socket.on('data', (chunk: Buffer) => this.#read(chunk))
    afterTest(() => this.socket.destroy())
  }

  /** The connection preface and empty SETTINGS. */
  begin(): this {
    this.socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    return this.send(FrameType.SETTINGS, 0, 0, Buffer.alloc(0))
  }

  send(type: number, flags: number, stream: number, payload: Buffer): this {
    const header = Buffer.alloc(9)
    header.writeUIntBE(payload.length, 0, 3)
    header[3] = type
    header[4] = flags
    header.writeUInt32BE(stream, 5)
    this.socket.write(Buffer.concat([header, payload]))
    return this
  }

  /** The headers that grpc-go sends; each as a literal, never indexed. */
  startCall(stream: number, path: string): this {
    const headers = {
      ':method': 'POST',
      ':scheme': 'http',
      ':path': path,
      ':authority': 'localhost',
      'content-type': 'application/grpc',
      'user-agent': 'grpc-go/1.60.0',
      te: 'trailers',
    }
    const literals = Object.entries(headers).map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name),
        Buffer.from([value.length]),
        Buffer.from(value),
      ]),
    )
    const endOfHeaders = 4
    return this.send(FrameType.HEADERS, endOfHeaders, stream, Buffer.concat(literals))
  }

  has(type: number, stream: number): boolean {
    return this.frames.some((frame) => frame.type === type && frame.stream === stream)
  }

  #read(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    while (this.#unread.length >= 9) {
      const length = this.#unread.readUIntBE(0, 3)
      if (this.#unread.length < 9 + length) return
      const [, , , type = 0, flags = 0] = this.#unread
      const stream = this.#unread.readUInt32BE(5) & 0x7fffffff
      this.frames.push({ type, flags, stream, payload: this.#unread.subarray(9, 9 + length) })
      this.#unread = this.#unread.subarray(9 + length)
    }
  }
}
