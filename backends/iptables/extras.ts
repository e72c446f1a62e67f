import { KpngError, type Log, messageOf } from '@kpng/api'

/** What their rules have in common. */
const words = { counters: 'nfacct', sctp: 'sctp' } as const

const advice = {
  counters: 'Packets are not counted: iptables refuses rules that count. Load the module xt_nfacct',
  sctp: 'SCTP ports are not served: iptables refuses rules about them. Load the module xt_sctp',
} as const

type Extra = keyof typeof advice

/** Rules that need modules which a kernel may lack. iptables refuses them, and with them everything. */
export class Extras {
  readonly #used = new Set<Extra>(['sctp'])

  uses(extra: Extra): boolean {
    return this.#used.has(extra)
  }

  use(extra: Extra): void {
    this.#used.add(extra)
  }

  /**
   * Tries again without the rules that may be the reason for a failure. If that works they stay left out, and the log says so.
   * @param needed those that there are rules for
   */
  async leaveOutRefused(error: unknown, needed: readonly Extra[], write: () => Promise<void>, log: Log): Promise<void> {
    // Otherwise another program holds the lock, or iptables is not there.
    const isRefusal = error instanceof KpngError && error.code === 'refused'
    const said = messageOf(error)
    // Legacy iptables gives no line but that of COMMIT if the kernel refuses a rule.
    const isAnyLine = !/ at line \d+ /.test(said) || said.includes('(COMMIT)')
    const [first, ...rest] = needed.filter(
      (extra) => this.#used.has(extra) && (isAnyLine || said.includes(words[extra])),
    )
    if (first === undefined || !isRefusal) throw error
    for (const without of [[first], rest, [first, ...rest]]) {
      if (without.length === 0) continue
      for (const extra of without) this.#used.delete(extra)
      const isWritten = await write().then(
        () => true,
        () => false,
      )
      if (isWritten) {
        for (const extra of without) log.warn(advice[extra], { error: said })
        return
      }
      for (const extra of without) this.#used.add(extra)
    }
    throw error
  }
}
