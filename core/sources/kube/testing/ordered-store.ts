import { Store, type Transaction } from '../../../store/index.js'

/** A store that checks, write by write, that no object goes back to an earlier change (see `randomChange`). */
export class OrderedStore extends Store {
  readonly #numbers = new Map<string, number>()
  readonly violations: string[] = []
  seen = 0

  override update(write: (transaction: Transaction) => void): number {
    const before = this.bookmark()
    const after = super.update(write)
    const changes = this.changesSince(before)
    this.release(before)
    for (const [path, { after: entry }] of changes?.services ?? []) {
      this.#check(`Service ${path}`, entry?.service?.labels.number)
      for (const [name, endpoints] of entry?.sources ?? []) {
        this.#check(`EndpointSlice ${name}`, endpoints[0]?.hostname.replace('number-', ''))
      }
    }
    for (const [name, { after: node }] of changes?.nodes ?? []) this.#check(`Node ${name}`, node?.labels.number)
    return after
  }

  #check(object: string, text: string | undefined): void {
    if (!text) return
    const number = Number(text)
    const last = this.#numbers.get(object) ?? -1
    if (number < last) this.violations.push(`${object} went from ${last} back to ${number}`)
    if (number !== last) this.seen++
    this.#numbers.set(object, number)
  }
}
