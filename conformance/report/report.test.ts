import { describe, expect, it } from 'vitest'
import { refused } from '../cases/cells.js'
import { htmlText } from './html.js'
import { junitText } from './junit.js'
import type { CellResult } from './report.js'
import { type ConformanceReport, summaryOf, summaryText } from './report.js'
import { tableText } from './table.js'

const result = (more: Partial<CellResult>): CellResult => ({
  id: 'one/pod-a.v4',
  case: 'one',
  title: 'One thing',
  step: 1,
  steps: 1,
  after: 'start',
  cell: 'pod-a.v4',
  client: 'pod-a',
  to: '10.96.1.1:80/TCP',
  expect: refused,
  expected: 'refused',
  got: 'refused',
  rows: [14],
  status: 'right',
  attempts: 1,
  ...more,
})

const results = [
  result({}),
  result({ id: 'one/b.v4', cell: 'b.v4', status: 'wrong', got: '3× dropped <&"' }),
  result({
    id: 'two/1/c.v4',
    case: 'two',
    title: 'Two',
    steps: 2,
    cell: 'c.v4',
    status: 'deviates',
    got: 'passed',
    reason: 'a process answers',
    link: 'https://example.com/1',
  }),
  result({
    id: 'two/2/c.v4',
    case: 'two',
    title: 'Two',
    step: 2,
    steps: 2,
    after: 'it went',
    cell: 'c.v4',
    status: 'unexpectedly-right',
    reason: 'it was so',
  }),
  result({
    id: 'three/d.v4',
    case: 'three',
    title: 'Three',
    cell: 'd.v4',
    status: 'skipped',
    got: '',
    reason: 'no SCTP',
    rows: [52, 60],
  }),
]

const report: ConformanceReport = {
  proxy: ['p'],
  backend: 'nft',
  results,
  summary: summaryOf(results),
  stability: [{ kind: 'clusterIP', protocol: 'TCP', family: 'IPv4', connections: 200, failed: 3 }],
  notes: [],
  durationMs: 1234,
  passed: false,
}

it('prints the truth table', () => {
  expect(tableText(results).split('\n')).toEqual([
    '',
    'one: One thing',
    '  ✓ pod-a.v4 pod-a → 10.96.1.1:80/TCP  refused  [14]',
    '  ✗ b.v4     pod-a → 10.96.1.1:80/TCP  expected refused; got 3× dropped <&"  [14]',
    '',
    'two: Two',
    '  step 1: start',
    '  ~ c.v4     pod-a → 10.96.1.1:80/TCP  passed instead of refused: a process answers  [14]',
    '  step 2: it went',
    '  ! c.v4     pod-a → 10.96.1.1:80/TCP  refused; no deviation after all: it was so  [14]',
    '',
    'three: Three',
    '  - d.v4     pod-a → 10.96.1.1:80/TCP  skipped: no SCTP  [52 60]',
  ])
})

it('shows what was unstable, and what was right only after a while', () => {
  const unstable = result({ status: 'unstable', got: '3 of 200 connections after it had been right: dropped' })
  const late = result({ attempts: 4, rightAfterMs: 812 })
  expect(tableText([unstable, late]).split('\n').slice(2)).toEqual([
    '  ≈ pod-a.v4 pod-a → 10.96.1.1:80/TCP  unstable: expected refused; got 3 of 200 connections after it had been right: dropped  [14]',
    '  ✓ pod-a.v4 pod-a → 10.96.1.1:80/TCP  refused, right after 4 tries and 812 ms  [14]',
  ])
  expect(summaryText(summaryOf([unstable, late]))).toBe('2 cells: 1 right, 1 unstable, 0 wrong')
  const text = junitText({ ...report, results: [unstable, late] })
  expect(text).toContain('tests="2" failures="1"')
  expect(text).toContain('<failure type="unstable" message="expected refused; got 3 of 200 connections')
  expect(text).toContain('<system-out>right after 4 tries and 812 ms</system-out>')
  const page = htmlText({ ...report, results: [unstable, late] })
  expect(page).toMatch(/<details id="one" open>/)
  expect(page).toContain('<tr class="unstable"><td>clusterIP</td><td>TCP</td><td>IPv4</td><td>200</td><td>3</td></tr>')
})

it('sums up', () => {
  expect(summaryText(report.summary)).toBe(
    '5 cells: 1 right, 1 deviate (named), 1 right in spite of a named deviation, 1 skipped, 1 wrong',
  )
  expect(summaryText(summaryOf([result({})]))).toBe('1 cells: 1 right, 0 wrong')
})

describe('JUnit', () => {
  const text = junitText(report)
  it('counts failures and skips, in all and for each case', () => {
    expect(text).toContain(
      '<testsuites name="kpng conformance (nft)" tests="5" failures="1" errors="0" skipped="1" time="1.234">',
    )
    expect(text).toContain('<testsuite name="one" tests="2" failures="1" errors="0" skipped="0">')
  })

  it('names each cell, and escapes what XML cannot hold', () => {
    expect(text).toContain('<testcase classname="one" name="one/pod-a.v4"/>')
    expect(text).toContain('<failure type="wrong" message="expected refused; got 3× dropped &lt;&amp;&quot;">')
    expect(text).toContain('<skipped message="no SCTP"/>')
    expect(text).toContain('<system-out>deviates: a process answers. Two.')
    expect(junitText({ ...report, results: [result({ status: 'wrong', got: 'a\u0000b' })] })).not.toContain('\u0000')
  })

  it('closes what it opens', () => {
    for (const name of ['testsuites', 'testsuite', 'failure', 'system-out']) {
      const opened = text.match(new RegExp(`<${name}[ >]`, 'g'))?.length
      expect([name, text.match(new RegExp(`</${name}>`, 'g'))?.length]).toEqual([name, opened])
    }
  })
})

describe('the page', () => {
  const text = htmlText({ ...report, notes: ['The proxy <ended>.'] })
  it('says what was wrong, and opens the cases that were', () => {
    expect(text).toContain('Not passed.')
    expect(text).toMatch(/<details id="one" open>/)
    expect(text).toMatch(/<details id="two">/)
    expect(text).toContain('<td>3× dropped &lt;&amp;&quot;</td>')
    expect(text).toContain('The proxy &lt;ended&gt;.')
  })

  it('leads from each deviation to its reason, and from there to its cases and to more', () => {
    expect(text).toContain('<a href="#reason-1">a process answers</a>')
    expect(text).toContain(
      '<li id="reason-1">a process answers (<a href="https://example.com/1">more</a>): 1 cells of <a href="#two">two</a></li>',
    )
  })

  it('has every place that it leads to, and asks nobody for anything', () => {
    for (const [, place] of text.matchAll(/href="#([^"]+)"/g)) expect(text).toContain(`id="${place}"`)
    expect(text).not.toMatch(/<script|<link|src=|@import|url\(/)
  })
})
