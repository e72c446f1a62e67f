import type { Diagnosis, Finding } from '@kpng/api'
import { type Code, catalogue } from './catalogue.js'
import { counted, examplesOf, found, namesOf, needsAction } from './findings.js'

/** What needs to be done about many Services: one finding for each code, with the Services that it concerns. */
export function collected(diagnoses: readonly Diagnosis[]): Finding[] {
  const byCode = new Map<string, { readonly diagnosis: Diagnosis; readonly finding: Finding }[]>()
  for (const diagnosis of diagnoses) {
    for (const finding of diagnosis.findings.filter(needsAction)) {
      byCode.set(finding.code, [...(byCode.get(finding.code) ?? []), { diagnosis, finding }])
    }
  }
  return [...byCode].map(([code, all]) => {
    const [{ diagnosis, finding }] = all as [(typeof all)[number]]
    const services = [...new Set(all.map((each) => each.diagnosis.service))]
    if (services.length === 1) {
      const what = finding.what.startsWith(diagnosis.service) ? finding.what : `${diagnosis.service}: ${finding.what}`
      return { ...finding, what, command: [explain(diagnosis.service), finding.command].filter(Boolean).join('\n') }
    }
    const { title } = catalogue[code as Code]
    const examples = all.map((each) => `${each.diagnosis.service}: ${each.finding.what}`)
    const what = `${counted(services.length, 'Service')}: ${title.charAt(0).toLowerCase()}${title.slice(1)}.`
    const { level, why, todo } = finding
    return found(code as Code, what, {
      ...{ level, why, todo },
      ...examplesOf(examples),
      command: explain(diagnosis.service),
    })
  })
}

function explain(service: string): string {
  const [namespace, name] = namesOf(service)
  return `kpng explain ${name} -n ${namespace}`
}
