import type { CellResult } from './report.js'

export const marks: Readonly<Record<CellResult['status'], string>> = {
  right: '✓',
  wrong: '✗',
  unstable: '≈',
  deviates: '~',
  'unexpectedly-right': '!',
  skipped: '-',
}

/** The truth table: one row a cell, grouped by case and step. */
export function tableText(results: readonly CellResult[]): string {
  const widths = { cell: width(results, 'cell'), client: width(results, 'client'), to: width(results, 'to') }
  const lines: string[] = []
  let group = ''
  let caseId = ''
  for (const result of results) {
    if (result.case !== caseId) {
      caseId = result.case
      group = ''
      lines.push('', `${result.case}: ${result.title}`)
    }
    if (result.steps > 1 && group !== `${result.step}`) {
      group = `${result.step}`
      lines.push(`  step ${result.step}: ${result.after}`)
    }
    lines.push(row(result, widths))
  }
  return lines.join('\n')
}

function row(result: CellResult, widths: Readonly<Record<'cell' | 'client' | 'to', number>>): string {
  const { status, cell, client, to, expected, got, reason, rows } = result
  const what = {
    right: `${expected}${lateText(result)}`,
    wrong: `expected ${expected}; got ${got}`,
    unstable: `unstable: expected ${expected}; got ${got}`,
    deviates: `${got} instead of ${expected}: ${reason}`,
    'unexpectedly-right': `${expected}; no deviation after all: ${reason}`,
    skipped: `skipped: ${reason}`,
  }[status]
  const columns = [cell.padEnd(widths.cell), client.padEnd(widths.client), '→', to.padEnd(widths.to), ` ${what}`]
  return `  ${marks[status]} ${columns.join(' ')}  [${rows.join(' ')}]`
}

/** Of a cell that was not right at once: how long it took. */
export const lateText = ({ attempts, rightAfterMs }: Pick<CellResult, 'attempts' | 'rightAfterMs'>): string =>
  rightAfterMs === undefined ? '' : `, right after ${attempts} tries and ${rightAfterMs} ms`

const width = (results: readonly CellResult[], column: 'cell' | 'client' | 'to'): number =>
  Math.max(0, ...results.map((result) => result[column].length))
