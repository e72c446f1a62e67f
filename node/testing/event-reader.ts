import { type RequestOptions, request } from 'node:http'
import { createGunzip } from 'node:zlib'

/** A server-sent event as it came in. */
export interface ReceivedEvent<Data = Readonly<Record<string, never>>> {
  readonly id: string
  readonly event: string
  readonly data: Data
}

/** Reads server-sent events until it is ended. */
export function readEvents<Data>(where: RequestOptions) {
  const events: ReceivedEvent<Data>[] = []
  const state = { bytes: 0, encoding: '', isOver: false }
  let text = ''
  const asked = request(where, (response) => {
    state.encoding = String(response.headers['content-encoding'] ?? '')
    response.on('data', (chunk: Buffer) => {
      state.bytes += chunk.length
    })
    // An end in the middle of the stream is how it always ends.
    const over = () => {
      state.isOver = true
    }
    response.on('error', over)
    response.on('close', over)
    const content = state.encoding === 'gzip' ? response.pipe(createGunzip()) : response
    content.on('error', () => {})
    content.setEncoding('utf8')
    content.on('data', (chunk: string) => {
      text += chunk
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const [, id = '', event = '', data = ''] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? []
        text = text.slice(end + 2)
        events.push({ id, event, data: JSON.parse(data) as Data })
      }
    })
  })
  asked.on('error', () => {
    state.isOver = true
  })
  asked.end()
  return { events, state, end: () => asked.destroy() }
}
