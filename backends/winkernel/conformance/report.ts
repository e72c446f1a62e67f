import { release, version } from 'node:os'

/** `noted`: HNS did something that is not judged, because nobody knows what is right. */
export type Verdict = 'passed' | 'failed' | 'skipped' | 'noted'

/** One thing that was looked at. */
export interface Check {
  readonly name: string
  readonly verdict: Verdict
  readonly sentence: string
  /** For `-o json`: what HNS holds, or what was measured. */
  readonly details?: unknown
}

/** What one command found, in the order in which it looked. */
export interface Report {
  readonly command: string
  /** Such as `Windows Server 2022 Datacenter (10.0.20348)`. */
  readonly system: string
  readonly checks: readonly Check[]
  /** Whether no check failed. */
  readonly passed: boolean
}

/** Collects checks. */
export class Checks {
  readonly #checks: Check[] = []

  add(verdict: Verdict, name: string, sentence: string, details?: unknown): void {
    this.#checks.push({ name, verdict, sentence, ...(details !== undefined && { details }) })
  }

  /** Passed if there is no problem. */
  judge(name: string, problems: readonly string[], sentence: string, details?: unknown): void {
    if (problems.length === 0) this.add('passed', name, sentence, details)
    else this.add('failed', name, problems.join(' '), details)
  }

  report(command: string): Report {
    const passed = this.#checks.every(({ verdict }) => verdict !== 'failed')
    return { command, system: `${version()} (${release()})`, checks: this.#checks, passed }
  }
}

/** One line per check, and a last one with the counts. */
export function reportText({ command, system, checks }: Report): string {
  const lines = checks.map(({ verdict, name, sentence }) => `${verdict.padEnd(8)} ${name}: ${sentence}`)
  const count = (wanted: Verdict) => checks.filter(({ verdict }) => verdict === wanted).length
  const counts = (['passed', 'failed', 'skipped', 'noted'] as const).map((each) => `${count(each)} ${each}`)
  return [`winkernel ${command} on ${system}`, ...lines, counts.join(', '), ''].join('\n')
}

/** `1 load balancer`, `2 load balancers`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
