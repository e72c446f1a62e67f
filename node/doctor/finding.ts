import type { Finding, Known } from '@kpng/api'

/** Facts as they were read: each is known or not. */
export type Read<Facts> = { readonly [Name in keyof Facts]: Known<Facts[Name]> }

/** A question about plain facts. It is skipped if one of those that it needs is not known. */
export interface Check<Facts> {
  readonly name: string
  readonly needs: readonly (keyof Facts)[]
  readonly find: (facts: Facts) => readonly Finding[]
}

export interface Section {
  readonly title: string
  readonly findings: readonly (Finding & { readonly check: string })[]
  readonly skipped: readonly { readonly check: string; readonly reason: string }[]
  /** How many checks ran. */
  readonly checks: number
}

/** Runs the checks whose facts are known. One that fails does not stop another. */
export function runChecks<Facts>(title: string, checks: readonly Check<Facts>[], facts: Read<Facts>): Section {
  const findings: (Finding & { check: string })[] = []
  const skipped: { check: string; reason: string }[] = []
  for (const { name, needs, find } of checks) {
    const unknown = needs.flatMap((need) => ('unknown' in facts[need] ? [facts[need].unknown] : []))
    if (unknown.length > 0) {
      skipped.push({ check: name, reason: [...new Set(unknown)].join('; ') })
      continue
    }
    const values = Object.fromEntries(needs.map((need) => [need, (facts[need] as { value: unknown }).value]))
    try {
      for (const finding of find(values as Facts)) findings.push({ check: name, ...finding })
    } catch (error) {
      skipped.push({ check: name, reason: `the check itself failed: ${String(error)}` })
    }
  }
  return { title, findings, skipped, checks: checks.length - skipped.length }
}

/** Makes a check whose function sees only the facts that it needs. */
export const check = <Facts, Name extends keyof Facts>(
  name: string,
  needs: readonly Name[],
  find: (facts: Pick<Facts, Name>) => readonly Finding[],
): Check<Facts> => ({ name, needs, find })
