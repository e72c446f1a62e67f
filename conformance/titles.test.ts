import { expect, test } from 'vitest'
import { cases } from './cases/index.js'
import type { CellResult } from './report/report.js'
import { titlesText } from './titles.js'
import { upstreamTitles } from './upstream-titles.js'

test('every title is shown by cases that exist, or says where it is shown', () => {
  const known = new Set(cases.map(({ id }) => id))
  const lost = upstreamTitles.filter(
    ({ cases: shownBy, elsewhere }) =>
      shownBy.some((id) => !known.has(id)) || (shownBy.length === 0 && elsewhere === undefined),
  )
  expect(lost).toEqual([])
  const names = upstreamTitles.map(({ file, title }) => `${file} ${title}`)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('a title is as good as the worst of its cells', () => {
  const cell = (of: string, status: CellResult['status']) => ({ case: of, status }) as CellResult
  const results = [
    cell('hairpin', 'right'),
    cell('hairpin', 'wrong'),
    cell('node-port', 'right'),
    cell('sctp', 'skipped'),
  ]
  const lines = titlesText(results).split('\n')
  const lineOf = (title: string) => lines.find((line) => line.includes(title))
  expect(lineOf('hairpin back to themselves')).toBe(
    '  ✗ should allow pods to hairpin back to themselves through services (hairpin: 2 cells: 1 right, 1 wrong)',
  )
  expect(lineOf('functioning NodePort')).toMatch(/^ {2}✓ /)
  expect(lineOf('basic SCTP')).toMatch(/^ {2}- /)
  expect(lineOf('NodePort collisions')).toBe(
    '    should prevent NodePort collisions (the job of the API server or of a controller, not of a proxy)',
  )
})
