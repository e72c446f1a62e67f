import type { IncomingMessage, ServerResponse } from 'node:http'
import { Session } from 'node:inspector/promises'
import { pipeline } from 'node:stream/promises'
import { getHeapSnapshot } from 'node:v8'
import { sendText } from './respond.js'

const mostSeconds = 300

/** A connection may be silent for as long while a snapshot is taken or a profile is written. */
const downloadMs = 300_000
let busy = false

/** `?seconds=5`: a .cpuprofile for Chrome's DevTools, VS Code or speedscope. One at a time: they would be in each other's. */
export async function sendCpuProfile(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
): Promise<void> {
  const text = query.get('seconds') ?? '30'
  const seconds = Number(text)
  if (!(seconds > 0 && seconds <= mostSeconds)) {
    return sendText(response, 400, `seconds is "${text}". Give a number up to ${mostSeconds}.\n`)
  }
  await alone(response, async () => {
    response.setTimeout(seconds * 1000 + downloadMs)
    const session = new Session()
    session.connect()
    try {
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      await pauseUnlessGone(request, response, seconds * 1000)
      const { profile } = await session.post('Profiler.stop')
      response.writeHead(200, download('cpuprofile')).end(JSON.stringify(profile))
    } finally {
      session.disconnect()
    }
  })
}

/** A .heapsnapshot for Chrome's DevTools. The process stands still while it is taken, and needs as much memory again. */
export async function sendHeapSnapshot(_: IncomingMessage, response: ServerResponse): Promise<void> {
  await alone(response, async () => {
    response.setTimeout(downloadMs)
    response.writeHead(200, download('heapsnapshot'))
    await pipeline(getHeapSnapshot(), response)
  })
}

async function alone(response: ServerResponse, work: () => Promise<void>): Promise<void> {
  if (busy) return sendText(response, 409, 'Another profile is being taken. Try again when it is done.\n')
  busy = true
  try {
    await work()
  } finally {
    busy = false
  }
}

const download = (extension: string) => ({
  'Content-Type': 'application/json',
  'Content-Disposition': `attachment; filename="kpng-${process.pid}.${extension}"`,
})

/** A client that leaves ends the profile: nobody would get it. */
function pauseUnlessGone(request: IncomingMessage, response: ServerResponse, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    response.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    request.resume()
  })
}
