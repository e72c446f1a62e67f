import type { Family } from '@kpng/api'
import type { Place } from '@kpng/linux/testing'
import { addressOf, type Host, podPorts } from '../addresses.js'
import type { Cell } from '../cases/case.js'
import type { Lab } from '../lab/lab.js'

// A busy machine answers late, and late must not look like dropped. So a question that is known to be answered, the control, is
// asked along with the questions of a cell, by the same client: silence counts only if it lasted several times as long as the
// answer to the control took.

/**
 * Silence lasts at least so long. An ICMPv6 error that comes back while the client's socket is still busy connecting is lost in the
 * kernel, as it does between namespaces, where everything is immediate; the next SYN, a second later, brings another.
 */
const silenceMs = ({ protocol, family }: Pick<Cell['to'], 'protocol' | 'family'>): number =>
  protocol === 'TCP' && family === 'IPv6' ? 1400 : 700

/** Silence lasts at least so many times as long as the control took. */
const controlsOfSilence = 5
/** A control that takes longer is not waited for. */
const longestControlMs = 10_000
/** With the shortest silence, a control may take so long. It is much for a machine that is not overloaded. */
const usualControlMs = 700 / controlsOfSilence
/** A proxy may take an endpoint that does not answer for so long for a dead one: then what it does is not what it usually does. */
const slowControlMs = 200

/** Where a question is answered for certain. */
export type Control = (family: Family) => Place

/** How fast the lab answers at the moment. */
export class Pace {
  readonly #lab: Lab
  #control: Control = direct
  #controlMs = 0
  #slowestMs = 0

  constructor(lab: Lab) {
    this.#lab = lab
  }

  /** From now on this is the control. If the proxy serves it, what a slow proxy adds is in the pace. Default: a pod. */
  use(control: Control = direct): void {
    this.#control = control
  }

  /** Asks the control, and a pod. Resolves with how long the slower answer took, in milliseconds. */
  async measure(client: Host, family: Family): Promise<number> {
    const ask = async (to: Place, timeoutMs: number) => {
      const start = performance.now()
      const { outcome } = await this.#lab.agents[client].call('probe', { to, timeoutMs })
      return { ms: performance.now() - start, outcome }
    }
    const [pod, served] = await Promise.all([
      ask(direct(family), longestControlMs),
      this.#control === direct ? undefined : ask(this.#control(family), silenceMs({ protocol: 'TCP', family })),
    ])
    // A Service that is refused or dropped says nothing about the machine. One that is accepted and answered late does.
    const isServed = served?.outcome === 'reached' || served?.outcome === 'broken'
    const ms = isServed ? Math.max(pod.ms, served.ms) : pod.ms
    this.#controlMs = ms
    this.#slowestMs = Math.max(this.#slowestMs, ms)
    return ms
  }

  /** Whether the machine was ever slow since this was asked last. */
  takeSlowness(): boolean {
    const isSlow = this.#slowestMs > slowControlMs
    this.#slowestMs = 0
    return isSlow
  }

  /** How long a client waits for an answer, as far as the pace is known. */
  timeoutMs(to: Cell['to'], leastMs = silenceMs(to)): number {
    return Math.max(leastMs, controlsOfSilence * this.#controlMs)
  }

  /** Whether silence for so long means something if the control took so long meanwhile. */
  isConclusive(silentMs: number, controlMs: number): boolean {
    return silentMs >= controlsOfSilence * controlMs
  }

  /** A time for a machine with nothing else to do, as long as it takes on this one at the moment. */
  scaled(ms: number): number {
    return ms * Math.max(1, this.#controlMs / usualControlMs)
  }
}

/** A pod, without any proxy in between. */
const direct: Control = (family) => ({ protocol: 'TCP', ip: addressOf.a1[family], port: podPorts[0] })
