import { type Log, OncePerMinute } from '@kpng/api'

/**
 * What is said of a connection. States: *connecting*, until the first change set has come; *connected*; *lost*, and *connecting* again.
 * Each connection after a trouble is said too, so that the last line is always true.
 */
export class ConnectionLog {
  readonly #log: Log
  /** By message, address and reason; since the last connection. Tries come every second, and can do so for days. */
  readonly #troubles: OncePerMinute
  #failedTries = 0
  #wasConnected = false

  constructor(log: Log, nowMs?: () => number) {
    this.#log = log
    this.#troubles = new OncePerMinute(nowMs)
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
    const times = this.#troubles.times([message, api, reason].join('\n'))
    if (times !== undefined) this.#log.warn(message, { api, reason, ...(times > 1 ? { times } : {}) })
  }
}
