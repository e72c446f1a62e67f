import type { ObservationListener } from '@kpng/client'

const nowMs = (): number => performance.timeOrigin + performance.now()

/**
 * Takes the times of one connection as it goes, and tells them once, at its end. Exists only while somebody listens: without it
 * no clock is read.
 */
export class ConnectionNotes {
  bytesToEndpoint = 0
  bytesToClient = 0
  readonly #listener: ObservationListener
  readonly #servicePort: string
  readonly #client: string
  readonly #acceptedAtMs = nowMs()
  #pickedAtMs: number | undefined
  #connectedAtMs: number | undefined
  #endpoint: string | undefined
  #error: string | undefined
  #told = false

  constructor(listener: ObservationListener, servicePort: string, client: string) {
    this.#listener = listener
    this.#servicePort = servicePort
    this.#client = client
  }

  /** An endpoint was chosen. Later ones, after a failure, are part of connecting. */
  picked(): void {
    this.#pickedAtMs ??= nowMs()
  }

  connected(endpoint: string): void {
    this.#connectedAtMs = nowMs()
    this.#endpoint = endpoint
  }

  /** The first reason is kept: what follows is its consequence. */
  failed(reason: string): void {
    this.#error ??= reason
  }

  /** It is over. Only the first call tells. */
  ended(): void {
    if (this.#told) return
    this.#told = true
    const endedAtMs = nowMs()
    this.#listener.connectionEnded?.({
      servicePort: this.#servicePort,
      client: this.#client,
      ...(this.#endpoint === undefined ? {} : { endpoint: this.#endpoint }),
      acceptedAtMs: this.#acceptedAtMs,
      pickedAtMs: this.#pickedAtMs ?? endedAtMs,
      connectedAtMs: this.#connectedAtMs ?? endedAtMs,
      endedAtMs,
      bytesToEndpoint: this.bytesToEndpoint,
      bytesToClient: this.bytesToClient,
      ...(this.#error === undefined ? {} : { error: this.#error }),
    })
  }
}
