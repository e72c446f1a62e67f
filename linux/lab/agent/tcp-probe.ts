import { connect, Socket } from 'node:net'
import type { Outcome, Place } from './protocol.js'
import { afterUnread, outcomeOfAnswer, outcomeOfError } from './verdict.js'

/** How much longer an answer may take once there is a connection; longer if the connection itself may take long. */
const answerTimeoutMs = (timeoutMs: number): number => Math.max(1500, 2 * timeoutMs)

/** Questions over a connection, which stays open until it is closed. */
export class TcpConversation {
  readonly #socket: Socket
  #connected: boolean
  #ended: Outcome | undefined
  #heard = ''
  #waiting: ((outcome: Outcome) => void) | undefined

  /** @param to where to connect, or a socket that is connected */
  constructor(to: Place | Socket) {
    this.#connected = to instanceof Socket
    this.#socket = to instanceof Socket ? to : connect({ host: to.ip, port: to.port, noDelay: true })
    this.#socket.on('connect', () => {
      this.#connected = true
    })
    this.#socket.on('data', (chunk) => this.#hear(chunk.toString()))
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#end(outcomeOfError(error.code, this.#connected)))
    this.#socket.on('close', () => this.#end(outcomeOfError(undefined, true)))
  }

  ask(timeoutMs: number): Promise<Outcome> {
    if (this.#ended) return Promise.resolve(this.#ended)
    return new Promise((resolve) => {
      const giveUp = () => {
        this.#waiting = undefined
        resolve(this.#connected ? { outcome: 'broken', how: 'connected, no answer' } : { outcome: 'dropped' })
      }
      let forget = afterUnread(timeoutMs, () => {
        // The connection was not dropped; the server may be busy.
        if (this.#connected) forget = afterUnread(answerTimeoutMs(timeoutMs), giveUp)
        else giveUp()
      })
      this.#waiting = (outcome) => {
        forget()
        this.#waiting = undefined
        resolve(outcome)
      }
      this.#socket.write('?\n')
    })
  }

  /** With a reset: thousands of probes would leave as many ports in TIME_WAIT. */
  close(): void {
    if (this.#connected) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  #hear(text: string): void {
    this.#heard += text
    const end = this.#heard.indexOf('\n')
    if (end < 0) return
    const line = this.#heard.slice(0, end)
    this.#heard = this.#heard.slice(end + 1)
    this.#waiting?.(outcomeOfAnswer(line))
  }

  #end(outcome: Outcome): void {
    this.#ended ??= outcome
    this.#waiting?.(this.#ended)
  }
}
