import { Socket } from 'node:net'
import type { Outcome, Place } from './protocol.js'
import { TcpConversation } from './tcp-probe.js'
import { outcomeOfError } from './verdict.js'

/** Questions over an SCTP association, which is made with the first question and stays until it is closed. */
export class SctpConversation {
  readonly #to: Place
  #connected: TcpConversation | undefined

  constructor(to: Place) {
    this.#to = to
  }

  async ask(timeoutMs: number): Promise<Outcome> {
    if (!this.#connected) {
      const { ip, port } = this.#to
      // Most agents never need it, and with its imports they would take twice as long to start.
      const { connectSctp } = await import('./sctp.js')
      const seen = await connectSctp(ip, port, timeoutMs)
      if (seen === undefined) return { outcome: 'dropped' }
      if (!(seen instanceof Socket)) return outcomeOfError(seen, false)
      this.#connected = new TcpConversation(seen)
    }
    return this.#connected.ask(timeoutMs)
  }

  close(): void {
    this.#connected?.close()
  }
}
