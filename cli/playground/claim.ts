import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import { KpngError } from '@kpng/api'

// Two playgrounds on one machine need two ranges of cluster IPs: with one, the second would show the first one's pods. A range is
// claimed by listening on the address of its Service `kubernetes`. The kernel gives it back however the process ends.

const claimPort = 12089

const defaultRanges = Array.from({ length: 16 }, (_, index) => `127.${96 + index}.0.0/16`)

export const firstRange = defaultRanges[0] as string

export interface Claim {
  readonly range: string
  /** The process that has the first range, if it is not this one. */
  readonly neighbour: string | undefined
  close(): void
}

/** Claims the range that was asked for, or the first free one of the usual ones. */
export async function claimRange(asked: string | undefined): Promise<Claim> {
  const ranges = asked === undefined ? defaultRanges : [asked]
  let neighbour: string | undefined
  for (const range of ranges) {
    const server = await listenIn(range)
    if (server !== 'in use') return { range, neighbour, close: () => void server?.close() }
    neighbour ??= await whoHas(range)
  }
  throw new KpngError(
    'unavailable',
    `Another playground (${neighbour}) has the addresses ${ranges[0]}. End it, or start this one without --service-cidr and --data-dir: it then takes a free range.`,
  )
}

const claimAddress = (range: string): string => range.replace(/\.\d+\/\d+.*$/, '.1')

/** Undefined where the range cannot be claimed: not on loopback, or a machine that has only 127.0.0.1. */
async function listenIn(range: string): Promise<Server | 'in use' | undefined> {
  if (!range.startsWith('127.')) return undefined
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`pid ${process.pid}`)
  })
  server.unref()
  server.listen(claimPort, claimAddress(range))
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'in use' : undefined
  }
}

async function whoHas(range: string): Promise<string> {
  const socket = connect(claimPort, claimAddress(range)).setEncoding('utf8')
  socket.setTimeout(1000, () => socket.destroy())
  let text = ''
  try {
    for await (const chunk of socket) text += chunk
  } catch {
    // It has just ended, or is something else.
  }
  return /^pid \d+$/.test(text) ? text : 'an unknown process'
}
