import { checklist } from '../checklist.js'
import { byCase, type CellResult, type ConformanceReport, isFailure, type Stability, summaryText } from './report.js'
import { lateText, marks } from './table.js'

// The report as one page that needs nothing else: no script, no font, no request. Cases are folded; those with a wrong cell are open.

const style = `
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif }
body { max-width: 78rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: .3rem 0 1rem }
th, td { text-align: left; padding: .15rem .7rem .15rem 0; vertical-align: top; border-bottom: 1px solid #8884 }
code, td.to { font-family: ui-monospace, monospace; font-size: .9em }
summary { cursor: pointer; padding: .25rem 0 }
.wrong, .unstable { color: #c62828 } .deviates { color: #a15c00 } .skipped { opacity: .65 }
@media (prefers-color-scheme: dark) { .wrong, .unstable { color: #ff8a80 } .deviates { color: #ffb74d } }
`

/** The whole page. */
export function htmlText(report: ConformanceReport): string {
  const { backend, passed, summary, durationMs, notes, proxy, results } = report
  const reasons = [...new Set(results.flatMap(({ reason }) => reason ?? []))]
  const title = `kpng conformance${backend === undefined ? '' : `: ${backend}`}`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${html(title)}</title>
<style>${style}</style>
<h1>${html(title)}</h1>
<p><strong class="${passed ? 'right' : 'wrong'}">${passed ? 'Passed.' : 'Not passed.'}</strong>
${html(`${summaryText(summary)}. ${(durationMs / 1000).toFixed(1)} s.`)}</p>
<p>The proxy: <code>${html(proxy.join(' '))}</code></p>
${notes.map((note) => `<p class="wrong">${html(note)}</p>`).join('\n')}
<h2>Cases</h2>
${[...byCase(results)].map(([id, cells]) => caseHtml(id, cells, reasons)).join('\n')}
${reasonsHtml(reasons, results)}
${stabilityHtml(report.stability)}
${checklistHtml(results)}
</html>
`
}

function caseHtml(id: string, cells: readonly CellResult[], reasons: readonly string[]): string {
  const worst = (['wrong', 'unstable', 'deviates', 'unexpectedly-right', 'skipped'] as const).find((status) =>
    cells.some((cell) => cell.status === status),
  )
  const right = cells.filter(({ status }) => status === 'right').length
  const isOpen = cells.some(isFailure)
  return `<details id="${html(id)}"${isOpen ? ' open' : ''}>
<summary class="${worst ?? 'right'}">${marks[worst ?? 'right']} <code>${html(id)}</code> ${html(cells[0]?.title ?? '')} (${right} of ${cells.length} right)</summary>
<table><tr><th></th><th>cell</th><th>from</th><th>to</th><th>expected</th><th>seen</th><th>why</th><th>rows</th></tr>
${cells.map((cell) => rowHtml(cell, reasons)).join('\n')}
</table></details>`
}

function rowHtml(cell: CellResult, reasons: readonly string[]): string {
  const { status, reason, client, to, expected, got, steps, step, after, rows } = cell
  const name = steps === 1 ? cell.cell : `${step}/${cell.cell}`
  const why = reason === undefined ? '' : `<a href="#reason-${reasons.indexOf(reason) + 1}">${html(reason)}</a>`
  const links = rows.map((row) => `<a href="#row-${row}">${row}</a>`).join(' ')
  const columns = [
    `<td>${marks[status]}</td><td title="${html(after)}">${html(name)}</td><td>${html(client)}</td><td class="to">${html(to)}</td>`,
    `<td>${html(expected)}</td><td>${html(got + lateText(cell))}</td><td>${why}</td><td>${links}</td>`,
  ]
  return `<tr class="${status}">${columns.join('')}</tr>`
}

/** Each reason once, with the cases that it is about. */
function reasonsHtml(reasons: readonly string[], results: readonly CellResult[]): string {
  if (reasons.length === 0) return ''
  const items = reasons.map((reason, index) => {
    const about = results.filter((result) => result.reason === reason)
    const cases = [...new Set(about.map((result) => result.case))]
    const link = about.find((result) => result.link !== undefined)?.link
    const more = link === undefined ? '' : ` (${linkHtml(link)})`
    const links = cases.map((id) => `<a href="#${html(id)}">${html(id)}</a>`).join(', ')
    return `<li id="reason-${index + 1}">${html(reason)}${more}: ${about.length} cells of ${links}</li>`
  })
  return `<h2>Why cells deviate or were skipped</h2>\n<ol>\n${items.join('\n')}\n</ol>`
}

/** The page may be read where kpng's own documents are not. */
const linkHtml = (link: string): string =>
  link.startsWith('https://') ? `<a href="${html(link)}">more</a>` : `more: ${html(link)}`

function stabilityHtml(stability: readonly Stability[]): string {
  if (stability.length === 0) return ''
  const rows = stability.map(({ kind, protocol, family, connections, failed }) => {
    const cells = [kind, protocol, family, connections, failed].map((value) => `<td>${html(String(value))}</td>`)
    return `<tr${failed > 0 ? ' class="unstable"' : ''}>${cells.join('')}</tr>`
  })
  const head = '<tr><th>address</th><th>protocol</th><th>family</th><th>connections</th><th>failed</th></tr>'
  return `<h2>Connections that were not tried twice</h2>\n<table>${head}\n${rows.join('\n')}\n</table>`
}

function checklistHtml(results: readonly CellResult[]): string {
  const rows = [...new Set(results.flatMap((result) => result.rows))].sort((a, b) => a - b)
  const items = rows.map((row) => `<tr id="row-${row}"><td>${row}</td><td>${html(checklist[row] ?? '')}</td></tr>`)
  return `<h2>Rows of the checklist</h2>\n<table>\n${items.join('\n')}\n</table>`
}

const html = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
