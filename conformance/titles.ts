import { type CellResult, summaryOf, summaryText } from './report/report.js'
import { marks } from './report/table.js'
import { type UpstreamTitle, upstreamTitles } from './upstream-titles.js'

/** The titles with what a run has shown of them. */
export function titlesText(results: readonly CellResult[]): string {
  const lines: string[] = []
  let file = ''
  for (const upstream of upstreamTitles) {
    if (upstream.file !== file) lines.push(...(file === '' ? [] : ['']), upstream.file)
    file = upstream.file
    lines.push(titleLine(upstream, results))
  }
  return lines.join('\n')
}

function titleLine({ title, cases, elsewhere }: UpstreamTitle, results: readonly CellResult[]): string {
  const cells = results.filter((result) => cases.includes(result.case))
  const status = worstOf(cells)
  const by = cells.length === 0 ? '' : ` (${cases.join(', ')}: ${summaryText(summaryOf(cells))})`
  const note = elsewhere === undefined ? '' : ` (${elsewhere})`
  return `  ${status === undefined ? ' ' : marks[status]} ${title}${by}${note}`
}

/** What people must know about the cells of a title. Undefined if there is none. */
function worstOf(cells: readonly CellResult[]): CellResult['status'] | undefined {
  const order = ['wrong', 'deviates', 'right', 'unexpectedly-right', 'skipped'] as const
  return order.find((status) => cells.some((cell) => cell.status === status))
}
