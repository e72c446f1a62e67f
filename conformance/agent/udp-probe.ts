import { createSocket, type Socket } from 'node:dgram'
import type { Outcome, Place } from './protocol.js'
import { afterUnread, outcomeOfAnswer, outcomeOfError } from './verdict.js'

/** The question is asked again after so long: a datagram may get lost without anybody having dropped it on purpose. */
const askAgainMs = 250

/** Questions from one connected UDP socket: one flow, and ICMP errors are heard. */
export class UdpConversation {
  readonly #socket: Socket
  readonly #connected: Promise<void>
  #waiting: ((outcome: Outcome) => void) | undefined

  constructor({ ip, port }: Place) {
    this.#socket = createSocket(ip.includes(':') ? 'udp6' : 'udp4')
    this.#socket.on('message', (message) => this.#waiting?.(outcomeOfAnswer(message.toString())))
    this.#socket.on('error', (error: NodeJS.ErrnoException) => this.#waiting?.(outcomeOfError(error.code, false)))
    this.#connected = new Promise((resolve, reject) => {
      // Node hands the failure to this callback though its types do not say so.
      this.#socket.connect(port, ip, ((error?: Error) => (error ? reject(error) : resolve())) as () => void)
    })
    this.#connected.catch(() => {})
  }

  async ask(timeoutMs: number): Promise<Outcome> {
    try {
      await this.#connected
    } catch (error) {
      return outcomeOfError((error as NodeJS.ErrnoException).code, false)
    }
    return new Promise((resolve) => {
      const send = () =>
        this.#socket.send('?', (error) => {
          const code = (error as NodeJS.ErrnoException | null)?.code
          // A packet filter of this very host took it; whether it refuses or drops is told by an ICMP error, or by none.
          if (error && code !== 'EPERM') this.#waiting?.(outcomeOfError(code, false))
        })
      const again = setInterval(send, askAgainMs)
      const settle = (outcome: Outcome) => {
        forget()
        clearInterval(again)
        this.#waiting = undefined
        resolve(outcome)
      }
      const forget = afterUnread(timeoutMs, () => settle({ outcome: 'dropped' }))
      this.#waiting = settle
      send()
    })
  }

  close(): void {
    this.#socket.close()
  }
}
