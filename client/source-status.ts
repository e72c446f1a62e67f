/** A watch without a connection for this long is stale. An API server that restarts is back sooner. */
export const staleAfterMs = 60_000

/**
 * One thing that a source watches: a resource of the API server, such as `services`, or a core. The source writes it; health pages and
 * metrics read it. Times are of the monotonic clock (`performance.now()`), because somebody may set the machine's time.
 */
export class WatchStatus {
  readonly name: string
  /** When the last event, bookmark or answer came. Undefined: nothing has come yet. */
  heardAtMs: number | undefined
  /** The server does not have this optional resource, so nothing of it can be missed. */
  isAbsent = false
  /** Since when the server says that its own state is stale. Undefined: it is not, or the server does not say. */
  serverStaleSinceMs: number | undefined
  #isConnected = false
  #changedAtMs = performance.now()

  constructor(name: string) {
    this.name = name
  }

  /** Whether a change in the cluster would arrive here. */
  get isConnected(): boolean {
    return this.#isConnected
  }

  /** Since when it is connected, or is not. */
  get changedAtMs(): number {
    return this.#changedAtMs
  }

  /** The server has accepted the watch, and what exists is known. */
  connected(): void {
    this.heardAtMs = performance.now()
    this.isAbsent = false
    this.#set(true)
  }

  /** The watch ended with a failure, or the next one could not be opened. */
  lost(): void {
    this.serverStaleSinceMs = undefined
    this.#set(false)
  }

  /** No connection for a minute. */
  isLost(nowMs = performance.now()): boolean {
    return !this.#isConnected && !this.isAbsent && nowMs - this.changedAtMs >= staleAfterMs
  }

  /** What it brought may no longer be what is in the cluster. */
  isStale(nowMs = performance.now()): boolean {
    return this.isLost(nowMs) || this.serverStaleSinceMs !== undefined
  }

  #set(isConnected: boolean): void {
    if (isConnected === this.#isConnected) return
    this.#isConnected = isConnected
    this.#changedAtMs = performance.now()
  }
}

/** How up to date the state is: one status per watch of the source. Empty if the source watches nothing, such as a file. */
export class SourceStatus {
  readonly watches = new Map<string, WatchStatus>()
  /** `savedAtMs` (Unix time) is there while the state comes from the state cache. Undefined: this process has no state cache. */
  stateCache: { savedAtMs: number | undefined } | undefined

  /** The state as a whole. */
  get isStale(): boolean {
    return this.stateCache?.savedAtMs !== undefined || [...this.watches.values()].some((watch) => watch.isStale())
  }

  /** The status of a watch, which is made if there is none of this name. */
  watch(name: string): WatchStatus {
    let status = this.watches.get(name)
    if (!status) {
      status = new WatchStatus(name)
      this.watches.set(name, status)
    }
    return status
  }
}
