import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readDocument } from '../../scripts/testing/documents.js'
import { cellId } from '../cases/case.js'
import { cases } from '../cases/index.js'
import { matchesAny } from '../evaluation/glob.js'
import { backendNames, deviationsOf } from './index.js'

const root = join(import.meta.dirname, '..', '..')

/** What is wrong with where a deviation leads. */
function wrongWith(link: string): string | undefined {
  if (/^https:\/\/\S+$/.test(link)) return undefined
  const [, path, anchor] = /^(docs\/\S+\.md)#(\S+)$/.exec(link) ?? []
  if (path === undefined || anchor === undefined) return 'It is not an address, and not a section of a document.'
  return readDocument(root, path).anchors.has(anchor) ? undefined : `${path} has no heading #${anchor}.`
}

it.each(backendNames)('each deviation of %s has a reason and leads to more about it', (backend) => {
  for (const { reason, link } of deviationsOf(backend)) {
    expect(reason).not.toBe('')
    expect([reason, link, wrongWith(link)]).toEqual([reason, link, undefined])
  }
})

it.each(backendNames)('each pattern of %s names a cell', (backend) => {
  const ids = cases.flatMap((one) =>
    one.steps.flatMap(({ cells }, step) => cells.map((cell) => cellId(one, step, cell))),
  )
  const patterns = deviationsOf(backend).flatMap(({ cells, except = [] }) => [...cells, ...except])
  expect(patterns.filter((pattern) => !ids.some((id) => matchesAny([pattern], id)))).toEqual([])
})
