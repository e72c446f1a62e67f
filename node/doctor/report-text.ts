import type { Finding, Level } from '@kpng/api'
import { byLevel, counted } from '@kpng/diagnose'
import type { Section } from './finding.js'

export interface Report {
  /** See `schemaVersion` of @kpng/api. */
  readonly schemaVersion: number
  /** What was looked at, as a line. */
  readonly about: string
  readonly sections: readonly Section[]
}

/** Whether something does not work. */
export const hasProblem = ({ sections }: Report): boolean =>
  sections.some(({ findings }) => findings.some(({ level }) => level === 'problem'))

/** The report for people: the findings of each section, the worst first, then what was not checked. */
export function reportText(report: Report): string {
  const parts = [report.about, ...report.sections.map(sectionText), summary(report)]
  return `${parts.join('\n\n')}\n`
}

function sectionText({ title, findings, skipped, checks }: Section): string {
  const blocks = byLevel(findings).map(findingText)
  if (findings.length === 0 && checks > 0) blocks.push(`  ok: nothing found by ${counted(checks, 'check')}`)
  if (skipped.length > 0) {
    blocks.push(['  Not checked:', ...skipped.map(({ check, reason }) => `    ${check}: ${reason}`)].join('\n'))
  }
  return [title, ...blocks].join('\n\n')
}

function findingText({ code, level, what, why, todo, command, examples = [], more = 0 }: Finding): string {
  const lines = [
    `  ${level.toUpperCase()}  ${code}  ${what}`,
    ...examples.map((example) => `    - ${example}`),
    ...(more > 0 ? [`    and ${more} more`] : []),
    `    Why it matters: ${why}`,
    `    What to do: ${todo}`,
    ...(command === undefined ? [] : command.split('\n').map((line) => `      ${line}`)),
  ]
  return lines.join('\n')
}

function summary({ sections }: Report): string {
  const all = sections.flatMap(({ findings }) => findings)
  const count = (wanted: Level) => all.filter(({ level }) => level === wanted).length
  const skipped = sections.reduce((sum, section) => sum + section.skipped.length, 0)
  const counts = (['problem', 'warning', 'note'] as const).map((level) => counted(count(level), level))
  return `${counts.join(', ')}${skipped > 0 ? `; ${counted(skipped, 'check')} skipped` : ''}`
}
