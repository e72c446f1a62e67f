import { byCase, type CellResult, type ConformanceReport, isFailure } from './report.js'
import { lateText } from './table.js'

/** JUnit XML, as CI systems read it: a suite a case, a test a cell. Named deviations pass; what they are is in the output. */
export function junitText({ results, durationMs, backend, passed, notes, summary }: ConformanceReport): string {
  const suites = byCase(results)
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${xml(`kpng conformance${backend ? ` (${backend})` : ''}`)}" ${counts(results)} time="${(durationMs / 1000).toFixed(3)}">`,
  ]
  for (const [name, cells] of suites) {
    lines.push(`  <testsuite name="${xml(name)}" ${counts(cells)}>`, ...cells.flatMap(testLines), '  </testsuite>')
  }
  // What fails a run without a wrong cell (a proxy that ended, nothing right at all) must not look like a success.
  if (!passed && summary.wrong + summary.unstable === 0) {
    const why = xml(notes.join(' ') || 'No cell was right.')
    lines.push(
      '  <testsuite name="the run" tests="1" failures="1" errors="0" skipped="0">',
      `    <testcase classname="run" name="passed"><failure message="${why}"/></testcase>`,
      '  </testsuite>',
    )
  }
  return `${[...lines, '</testsuites>'].join('\n')}\n`
}

function testLines(result: CellResult): string[] {
  const { id, title, status, client, to, expected, got, reason, rows } = result
  const open = `    <testcase classname="${xml(result.case)}" name="${xml(id)}"`
  const said = `${title}. ${client} to ${to}: expected ${expected}; got ${got}. Checklist ${rows.join(', ')}.`
  switch (status) {
    case 'right':
      return result.rightAfterMs === undefined
        ? [`${open}/>`]
        : [`${open}>`, `      <system-out>${xml(lateText(result).slice(2))}</system-out>`, '    </testcase>']
    case 'wrong':
    case 'unstable':
      return [
        `${open}>`,
        `      <failure type="${status}" message="${xml(`expected ${expected}; got ${got}`)}">${xml(said)}</failure>`,
        '    </testcase>',
      ]
    case 'skipped':
      return [`${open}>`, `      <skipped message="${xml(reason ?? '')}"/>`, '    </testcase>']
    default:
      return [`${open}>`, `      <system-out>${xml(`${status}: ${reason}. ${said}`)}</system-out>`, '    </testcase>']
  }
}

function counts(results: readonly CellResult[]): string {
  const skipped = results.filter(({ status }) => status === 'skipped').length
  return `tests="${results.length}" failures="${results.filter(isFailure).length}" errors="0" skipped="${skipped}"`
}

const xml = (text: string): string =>
  text
    // XML has no way to write these at all.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
