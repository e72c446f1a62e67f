import { connect, type Socket } from 'node:net'
import type { Outcome, Place } from './protocol.js'
import { outcomeOfAnswer, outcomeOfError } from './verdict.js'

// Much data in both directions, with one direction closed first: cases that a proxy which copies bytes can get wrong. The
// client sends its bytes and closes its side; the server then answers with who it is, how many came, and as many bytes.

/** How a connection that carries much data begins. */
export const bulkMark = 'B'
/** Much data may take this many times as long as an answer, and at least this long. */
const answersOfBulk = 7
const shortestMs = 5000

/** The server's side of it: everything is read first, then answered. */
export function answerBulk(socket: Socket, first: Buffer, answer: string): void {
  let received = first.length
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length
  })
  socket.on('end', () => {
    socket.write(answer)
    socket.end(Buffer.alloc(received, '.'))
  })
}

/** Sends the given number of bytes, closes its side, and counts what comes back. */
export function askBulk({ ip, port }: Place, bytes: number, timeoutMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: ip, port, allowHalfOpen: true })
    const chunks: Buffer[] = []
    let connected = false
    const settle = (outcome: Outcome) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(outcome)
    }
    const timer = setTimeout(
      () => settle(connected ? { outcome: 'broken', how: 'much data was not answered' } : { outcome: 'dropped' }),
      Math.max(shortestMs, answersOfBulk * timeoutMs),
    )
    socket.on('connect', () => {
      connected = true
      socket.end(Buffer.alloc(bytes, bulkMark))
    })
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => settle(outcomeOfError(error.code, connected)))
    socket.on('end', () => settle(outcomeOfBulk(Buffer.concat(chunks), bytes)))
  })
}

function outcomeOfBulk(answer: Buffer, sent: number): Outcome {
  const end = answer.indexOf(0x0a)
  const returned = answer.length - end - 1
  if (end < 0 || returned !== sent) return { outcome: 'broken', how: `${returned} of ${sent} bytes came back` }
  return outcomeOfAnswer(answer.subarray(0, end).toString())
}
