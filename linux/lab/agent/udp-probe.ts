import { createSocket, type Socket } from 'node:dgram'
import type { Outcome, Place } from './protocol.js'
import { afterUnread, outcomeOfAnswer, outcomeOfError, questionOf } from './verdict.js'

/** The datagram is sent again after this time, because one may get lost by accident. */
const askAgainMs = 250

/** Between two questions a flow is kept going, as that of a client in mid-work: proxies and conntrack forget silent ones. */
const keepGoingMs = 1000

/** Questions from one connected UDP socket: one flow, and ICMP errors are heard. */
export class UdpConversation {
  readonly #socket: Socket
  readonly #connected: Promise<void>
  #asked = 0
  #waiting: ((outcome: Outcome) => void) | undefined
  #keepGoing: NodeJS.Timeout | undefined

  constructor({ ip, port }: Place) {
    this.#socket = createSocket(ip.includes(':') ? 'udp6' : 'udp4')
    this.#socket.on('message', (message) => this.#hear(message.toString()))
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#waiting?.(outcomeOfError(error.code, false)))
    this.#connected = new Promise((resolve, reject) => {
      // Node hands the failure to this callback though its types do not say so.
      this.#socket.connect(port, ip, ((error?: Error) => (error ? reject(error) : resolve())) as () => void)
    })
    this.#connected.catch(() => {})
  }

  async ask(timeoutMs: number, sendOnce = false): Promise<Outcome> {
    clearInterval(this.#keepGoing)
    try {
      await this.#connected
    } catch (error) {
      return outcomeOfError((error as NodeJS.ErrnoException).code, false)
    }
    this.#asked++
    return new Promise((resolve) => {
      const again = sendOnce ? undefined : setInterval(() => this.#send(), askAgainMs)
      const settle = (outcome: Outcome) => {
        forget()
        clearInterval(again)
        this.#waiting = undefined
        resolve(outcome)
      }
      const forget = afterUnread(timeoutMs, () => settle({ outcome: 'dropped' }))
      this.#waiting = settle
      this.#send()
    })
  }

  /** Sends on until the next question, whose answers are told from those to these datagrams by its number. */
  keepGoing(): void {
    this.#keepGoing = setInterval(() => this.#send(), keepGoingMs)
  }

  close(): void {
    this.#socket.close()
  }

  #hear(text: string): void {
    const outcome = outcomeOfAnswer(text)
    // An answer to an earlier question, maybe by an earlier endpoint.
    if (outcome.outcome === 'reached' && questionOf(text) !== `${this.#asked}`) return
    this.#waiting?.(outcome)
  }

  #send(): void {
    this.#socket.send(`${this.#asked}`, (error) => {
      const code = (error as NodeJS.ErrnoException | null)?.code
      // A packet filter on this host stopped it. An ICMP error, or its absence, says whether it refuses or drops.
      if (error && code !== 'EPERM') this.#waiting?.(outcomeOfError(code, false))
    })
  }
}
