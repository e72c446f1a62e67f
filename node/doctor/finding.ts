/** problem: something does not work. warning: it works now, or only in part. note: good to know. */
export type Level = 'problem' | 'warning' | 'note'

/** One thing that the doctor found. Every text is a sentence. */
export interface Finding {
  readonly level: Level
  readonly what: string
  readonly why: string
  readonly todo: string
  /** To paste into a shell. */
  readonly command?: string
  /** The objects that it is about: some of them, if there are many. */
  readonly examples?: readonly string[]
  /** How many objects `examples` leaves out. */
  readonly more?: number
}

/** A fact, or the reason why nobody knows it. */
export type Known<T> = { readonly value: T } | { readonly unknown: string }

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

const mostExamples = 5

/** The first names of a long list. */
export function examplesOf(names: readonly string[]): Pick<Finding, 'examples' | 'more'> {
  const more = names.length - mostExamples
  return { examples: names.slice(0, mostExamples), ...(more > 0 ? { more } : {}) }
}

/** `1 Service`, `2 Services` */
export const counted = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`

const order: readonly Level[] = ['problem', 'warning', 'note']

/** The worst findings first; otherwise in the order of the checks. */
export const byLevel = <T extends Finding>(findings: readonly T[]): T[] =>
  order.flatMap((level) => findings.filter((finding) => finding.level === level))
