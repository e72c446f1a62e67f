import { readFileSync } from 'node:fs'

/** How long a process has waited for a processor so far, in milliseconds; undefined if it has ended, or the kernel does not count it. */
function waitedMs(pid: number): number | undefined {
  try {
    const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(waitedNs) / 1e6
  } catch {
    return undefined
  }
}

/** How long the proxy was ready to run and got no processor, since the beginning. A busy machine takes this time, not the proxy. */
export class CpuWait {
  readonly #pid: () => number | undefined
  readonly #read: (pid: number) => number | undefined
  #seen: { readonly pid: number; readonly ms: number } | undefined
  #totalMs = 0

  /** @param pid the proxy at the moment: it may be restarted */
  constructor(pid: () => number | undefined, read = waitedMs) {
    this.#pid = pid
    this.#read = read
  }

  get ms(): number {
    const pid = this.#pid()
    const ms = pid === undefined ? undefined : this.#read(pid)
    if (pid === undefined || ms === undefined) return this.#totalMs
    this.#totalMs += ms - (this.#seen?.pid === pid ? this.#seen.ms : 0)
    this.#seen = { pid, ms }
    return this.#totalMs
  }
}
