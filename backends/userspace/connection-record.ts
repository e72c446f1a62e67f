/** What a connection was, told when it is over: a TCP connection, or a UDP session. Unix times in milliseconds, with fractions. */
export interface ConnectionRecord {
  /** `namespace/name:port` */
  readonly servicePort: string
  /** `10.0.0.1:4711` */
  readonly client: string
  /** The endpoint that was reached; missing when none was. A UDP session has one as soon as its socket is open. */
  readonly endpoint?: string
  readonly acceptedAtMs: number
  /** The first endpoint was chosen, or it was clear that there is none. */
  readonly pickedAtMs: number
  /** An endpoint answered, maybe not the first one that was tried; or all tries were over. */
  readonly connectedAtMs: number
  readonly endedAtMs: number
  readonly bytesToEndpoint: number
  readonly bytesToClient: number
  /** Why it failed, or ended before its time. */
  readonly error?: string
}

export type OnConnection = (connection: ConnectionRecord) => void

const nowMs = (): number => performance.timeOrigin + performance.now()

/**
 * Takes the times of one connection as it goes, and tells them once, at its end. Exists only while somebody listens: without it
 * no clock is read.
 */
export class ConnectionNotes {
  bytesToEndpoint = 0
  bytesToClient = 0
  readonly #tell: OnConnection
  readonly #servicePort: string
  readonly #client: string
  readonly #acceptedAtMs = nowMs()
  #pickedAtMs: number | undefined
  #connectedAtMs: number | undefined
  #endpoint: string | undefined
  #error: string | undefined
  #told = false

  constructor(tell: OnConnection, servicePort: string, client: string) {
    this.#tell = tell
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
    this.#tell({
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
