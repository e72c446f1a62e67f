import { addressBits, CidrSet, type Family, familyOf, parseCidrs } from '@kpng/api'
import type { Outcome } from '@kpng/linux/testing'
import {
  addedServiceCidr,
  externalCidr,
  ipsOf,
  loadBalancerCidr,
  ownExternalAddress,
  serviceCidr,
} from '../addresses.js'
import type { Destination, Expectation } from '../cases/case.js'
import { isRight, outcomesText } from '../evaluation/evaluate.js'
import type { AddressKind, Stability } from '../report/report.js'
import { isSilence } from './measure.js'
import type { PlacedCell } from './rounds.js'

// Connections that are made once, to cells that were right before. A refusal, a reset or a wrong pod is proof that the proxy is at fault.
// Silence may be an accident of the machine: a process that gets no processor for a second answers too late. So only a share of silent
// connections is proof, and never a single one.

const silencesOfProof = 2
/** Of all connections of a kind. A proxy that loses 1 in 100 loses three times as many. */
const shareOfProof = 0.003
/** With a smaller share, no more connections are made to be sure. */
const shareOfDoubt = 0.001

/** What connections have in common. */
export interface Way {
  readonly kind: AddressKind
  readonly protocol: Destination['protocol']
  readonly family: Family
}

export const wayId = ({ kind, protocol, family }: Way): string => `${kind} ${protocol} ${family}`

const setOf = (...texts: string[]): CidrSet => new CidrSet(parseCidrs(texts))
/** The range of one address. */
const alone = (ip: string): string => `${ip}/${addressBits[familyOf(ip)]}`
const kinds: readonly (readonly [AddressKind, CidrSet])[] = [
  ['clusterIP', setOf(...ipsOf(serviceCidr), ...ipsOf(addedServiceCidr))],
  ['loadBalancerIP', setOf(...ipsOf(loadBalancerCidr))],
  ['externalIP', setOf(...ipsOf(externalCidr), ...ipsOf(ownExternalAddress).map(alone))],
]
const isNodePort = (port: number): boolean => port >= 30_000 && port < 32_768

/** Undefined if it is not the address of a Service, such as that of a pod. */
export function wayOf({ ip, port, protocol, family }: Destination): Way | undefined {
  const kind = kinds.find(([, set]) => set.has(ip))?.[0] ?? (isNodePort(port) ? 'nodePort' : undefined)
  return kind && { kind, protocol, family }
}

interface Asked {
  readonly placed: PlacedCell
  /** When the connections were made, in words. */
  readonly when: string
  connections: number
  readonly wrong: Outcome[]
}

/** What became of all such connections of a run. */
export class Tally {
  /** By way, then by cell and moment. */
  readonly #asked = new Map<string, { readonly way: Way; readonly cells: Map<string, Asked> }>()

  /** @param allowed what each connection may show */
  add(placed: PlacedCell, when: string, allowed: readonly Expectation[], outcomes: readonly Outcome[]): void {
    const way = wayOf(placed.cell.to)
    if (!way) return
    const id = wayId(way)
    const { cells } = this.#asked.get(id) ?? { cells: new Map<string, Asked>() }
    this.#asked.set(id, { way, cells })
    const key = `${placed.id} ${when}`
    const asked = cells.get(key) ?? { placed, when, connections: 0, wrong: [] }
    cells.set(key, asked)
    asked.connections += outcomes.length
    const { client } = placed.cell
    asked.wrong.push(...outcomes.filter((outcome) => !allowed.some((expect) => isRight(expect, client, outcome))))
  }

  connectionsOf(way: Way): number {
    return sum([...(this.#asked.get(wayId(way))?.cells.values() ?? [])].map(({ connections }) => connections))
  }

  /** Something was silent, and it is not known whether the proxy is to blame. */
  isOpen(way: Way): boolean {
    return this.#wrongOf(way).length > this.connectionsOf(way) * shareOfDoubt && !this.isProven(way)
  }

  #wrongOf(way: Way): Outcome[] {
    return [...(this.#asked.get(wayId(way))?.cells.values() ?? [])].flatMap(({ wrong }) => wrong)
  }

  /** The proxy is to blame. */
  isProven(way: Way): boolean {
    const wrong = this.#wrongOf(way)
    if (wrong.some((outcome) => !isSilence(outcome))) return true
    return wrong.length >= silencesOfProof && wrong.length >= this.connectionsOf(way) * shareOfProof
  }

  get stability(): Stability[] {
    return [...this.#asked.values()].map(({ way }) => ({
      ...way,
      connections: this.connectionsOf(way),
      failed: this.isProven(way) ? this.#wrongOf(way).length : 0,
    }))
  }

  /** What the unstable cells showed, by their id. */
  get unstable(): Map<string, string> {
    const texts = new Map<string, string>()
    for (const { way, cells } of this.#asked.values()) {
      if (!this.isProven(way)) continue
      for (const { placed, when, connections, wrong } of cells.values()) {
        if (wrong.length === 0) continue
        const text = `${wrong.length} of ${connections} connections ${when}: ${outcomesText(placed.cell.client, wrong)}`
        texts.set(placed.id, [...(texts.has(placed.id) ? [texts.get(placed.id)] : []), text].join('; '))
      }
    }
    return texts
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
