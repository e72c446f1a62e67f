import type { Finding, Level } from '@kpng/api'
import { type Code, catalogue } from './catalogue.js'

/** A finding of the catalogue. @param more what this case says more exactly */
export function found(
  code: Code,
  what: string,
  more: Partial<Pick<Finding, 'level' | 'why' | 'todo' | 'command' | 'examples' | 'more'>> = {},
): Finding {
  const { level, why, todo } = catalogue[code]
  return { code, level, what, why, todo, ...more }
}

const order: readonly Level[] = ['problem', 'warning', 'note']

/** The worst findings first; otherwise in the order in which they were found. */
export const byLevel = <T extends Pick<Finding, 'level'>>(findings: readonly T[]): T[] =>
  order.flatMap((level) => findings.filter((finding) => finding.level === level))

/** Whether something does not work, or only in part. */
export const needsAction = ({ level }: Pick<Finding, 'level'>): boolean => level !== 'note'

const mostExamples = 5

/** The first names of a long list. */
export function examplesOf(names: readonly string[]): Pick<Finding, 'examples' | 'more'> {
  const more = names.length - mostExamples
  return { examples: names.slice(0, mostExamples), ...(more > 0 ? { more } : {}) }
}

/** `1 Service`, `2 Services` */
export const counted = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`

/** A word of a shell command. Names in Kubernetes need no quotes; what a file says may. */
export const word = (text: string): string =>
  /^[\w./=:,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** The namespace and the name of a Service, as words of a shell command. */
export function namesOf(service: string): readonly [namespace: string, name: string] {
  const at = service.indexOf('/')
  return [word(service.slice(0, at)), word(service.slice(at + 1))]
}
