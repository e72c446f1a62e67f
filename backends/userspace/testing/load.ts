import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { outcome } from './peers.js'

/** A server that says its name, or streams zeros for as long as the client stays when it is asked to "stream". */
export const startDownload = (name: string) => (socket: Socket) => {
  const chunk = Buffer.alloc(16_384)
  socket.on('end', () => socket.writableEnded || socket.end(`${name} ${socket.remoteAddress}`))
  socket.on('data', (asked) => {
    if (asked.toString() !== 'stream') return
    const timer = setInterval(() => socket.write(chunk), 5)
    socket.on('close', () => clearInterval(timer))
  })
}

export interface LoadResult {
  /** How often each answer or error was had. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly bytes: number
}

/** New connections, `parallel` at a time; or one download for a while. */
export async function load(what: {
  ip: string
  port: number
  connections?: number
  parallel?: number
  downloadMs?: number
}): Promise<LoadResult> {
  const outcomes: Record<string, number> = {}
  const count = (name: string) => {
    outcomes[name] = (outcomes[name] ?? 0) + 1
  }
  if (what.downloadMs !== undefined)
    return { outcomes, bytes: await download(what.ip, what.port, what.downloadMs, count) }
  let left = what.connections ?? 0
  const worker = async () => {
    while (left-- > 0) count((await outcome(what.ip, what.port)).split(' ')[0] as string)
  }
  await Promise.all(Array.from({ length: what.parallel ?? 8 }, worker))
  return { outcomes, bytes: 0 }
}

async function download(ip: string, port: number, ms: number, count: (name: string) => void): Promise<number> {
  let bytes = 0
  const socket = connect({ host: ip, port })
  socket.on('data', (chunk) => {
    bytes += chunk.length
  })
  socket.on('error', (error: NodeJS.ErrnoException) => count(error.code ?? error.message))
  socket.on('close', () => count('closed'))
  socket.write('stream')
  await pause(ms)
  // What was counted so far happened while the download was wanted.
  socket.removeAllListeners('close')
  socket.destroy()
  return bytes
}
