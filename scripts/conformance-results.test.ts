import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
// @ts-expect-error: plain JavaScript, as all scripts
import { merged, pageWith, resultOf, results, tablesOf } from './conformance-results.js'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'conformance.md'), 'utf8')

test('the tables of docs/conformance.md are those of the kept results', () => {
  expect(results().size).toBeGreaterThan(0)
  expect(pageWith(page, results())).toBe(page)
})

test('no kept result has a wrong or unstable cell', () => {
  for (const [name, { summary }] of results())
    expect([name, summary.wrong, summary.unstable ?? 0]).toEqual([name, 0, 0])
})

test('a report is counted by case, with the reasons', () => {
  const cell = (id: string, status: string, reason?: string, link?: string) => ({
    ...{ case: id, status, ...(reason && { reason }), ...(link && { link }) },
  })
  const summary = { cells: 3, right: 1, wrong: 0, deviates: 1, 'unexpectedly-right': 0, skipped: 1 }
  const report = {
    summary,
    results: [
      cell('a', 'right'),
      cell('a', 'deviates', 'it differs', 'docs/userspace.md#limits'),
      cell('b', 'skipped', 'it is not there'),
    ],
  }
  const kept = resultOf(report, { date: '2026-11-16', kernel: '6.18', version: '0.1.0' })
  expect(
    tablesOf(new Map([['nft', kept]])),
  ).toBe(`| proxy | right | named deviations | skipped | wrong | seen | kernel | version |
| --- | --- | --- | --- | --- | --- | --- | --- |
| nft | 1 | 1 | 1 | 0 | 2026-11-16 | 6.18 | 0.1.0 |

| case | nft |
| --- | --- |
| \`a\` | ✓ 1, ~ 1 (1) |
| \`b\` | - 1 (2) |

Why cells deviate or were skipped:

1. it differs ([more](userspace.md#limits))
2. it is not there
`)
})

test('a report of some cases takes their place in a kept result', () => {
  const about = { date: '2026-11-16', kernel: '6.18', version: '0.1.0' }
  const kept = {
    ...about,
    summary: { cells: 3, right: 1, wrong: 0, deviates: 0, 'unexpectedly-right': 0, skipped: 2 },
    cases: { a: { right: 1 }, sctp: { right: 0, skipped: 2, reasons: ['no SCTP'] } },
    links: { 'it differs': 'https://example.com/1' },
  }
  const added = { ...about, date: '2026-11-17', kernel: '6.1', summary: {}, cases: { sctp: { right: 2 } } }
  const both = merged(kept, added)
  expect(both).toEqual({
    ...about,
    summary: { cells: 3, right: 3, wrong: 0, unstable: 0, deviates: 0, 'unexpectedly-right': 0, skipped: 0 },
    cases: { a: { right: 1 }, sctp: { right: 2, seen: { date: '2026-11-17', kernel: '6.1', version: '0.1.0' } } },
    links: { 'it differs': 'https://example.com/1' },
  })
  expect(tablesOf(new Map([['nft', both]]))).toContain(`| nft | 3 | 0 | 0 | 0 | 2026-11-16 | 6.18 | 0.1.0 |

Of these, seen in runs of their own, such as those in the VM:

| proxy | cases | seen | kernel | version |
| --- | --- | --- | --- | --- |
| nft | \`sctp\` | 2026-11-17 | 6.1 | 0.1.0 |

| case | nft |`)
})

test.each([
  [['nft'], '"nft" is not of the form NAME=REPORT.json or NAME+=REPORT.json.'],
  [['../nft=package.json'], '"../nft=package.json" is not of the form NAME=REPORT.json or NAME+=REPORT.json.'],
  [['nft=missing.json'], /^The report missing\.json cannot be read: ENOENT/],
  [['nft=README.md'], /^The report README\.md cannot be read: /],
  [['nft=package.json'], 'package.json is not a report. Make one with kpng conformance --json package.json.'],
  [['none+=x.json'], 'There is no kept result "none" to add to. Give none=x.json first, with all cases.'],
])('%j is refused with a sentence', (args, sentence) => {
  const root = join(import.meta.dirname, '..')
  const { status, stderr } = spawnSync(process.execPath, ['scripts/conformance-results.js', ...args], {
    ...{ cwd: root, encoding: 'utf8' },
  })
  expect(stderr.trim()).toMatch(sentence)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(status).toBe(2)
})
