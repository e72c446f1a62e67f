import type { Log } from '@kpng/api'

interface Trouble {
  saidAtMs: number
  /** How often it came, as long as there was no connection. */
  times: number
}

/** Says each trouble at once, and then at most so often: tries come every second, and can do so for days. */
const quietMs = 60_000

/**
 * What is said of a connection. States: *connecting*, until the first change set has come; *connected*; *lost*, and *connecting* again.
 * Each connection after a trouble is said too, so that the last line is always true.
 */
export class ConnectionLog {
  readonly #log: Log
  readonly #nowMs: () => number
  /** By message, address and reason; since the last connection. */
  readonly #troubles = new Map<string, Trouble>()
  #failedTries = 0
  #wasConnected = false

  constructor(log: Log, nowMs = () => performance.now()) {
    this.#log = log
    this.#nowMs = nowMs
  }

  connected(api: string): void {
    const failedTries = this.#failedTries
    this.#log.info(this.#wasConnected ? 'Connected again' : 'Connected', {
      api,
      ...(failedTries > 0 ? { failedTries } : {}),
    })
    this.#wasConnected = true
    this.#failedTries = 0
    this.#troubles.clear()
  }

  lost(api: string, reason: string): void {
    this.#trouble('Connection lost; connecting again', api, reason)
  }

  failed(api: string, reason: string): void {
    this.#failedTries++
    this.#trouble('No connection; trying again', api, reason)
  }

  #trouble(message: string, api: string, reason: string): void {
    const key = [message, api, reason].join('\n')
    const nowMs = this.#nowMs()
    const trouble = this.#troubles.get(key) ?? { saidAtMs: Number.NEGATIVE_INFINITY, times: 0 }
    this.#troubles.set(key, trouble)
    trouble.times++
    if (nowMs - trouble.saidAtMs < quietMs) return
    trouble.saidAtMs = nowMs
    this.#log.warn(message, { api, reason, ...(trouble.times > 1 ? { times: trouble.times } : {}) })
  }
}
