import { beforeEach, describe, expect, test } from 'vitest'
import { nftBackend } from './backend.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { nft } from './testing/running.js'

describe.skipIf(whyNoKernel() !== undefined)('removing tables', () => {
  beforeEach(() => enterNewNamespace())

  const foreign = ['ip kpng-userspace', 'ip kpng-ipvs', 'ip6 kpng-ipvs-edge', 'ip kube-proxy', 'inet kpng', 'ip kpngx']
  const ours = ['ip kpng', 'ip6 kpng', 'ip kpng-special']

  test.each([
    [undefined, []],
    ['kpng', ['ip kpng-special']],
    ['kpng-special', ['ip kpng', 'ip6 kpng']],
    ['kpng-other', ours],
  ])('of %s removes those and no others', async (name, left) => {
    for (const table of [...foreign, ...ours]) nft('add', 'table', ...table.split(' '))
    nft('add chain ip kpng one; add chain ip kpng two; add rule ip kpng one jump two')
    await nftBackend(name === undefined ? {} : { tableName: name }).cleanup()
    const tables = nft('list', 'tables').trim().split('\n')
    expect(tables.sort()).toEqual([...foreign, ...left].map((table) => `table ${table}`).sort())
  })

  test('where there are none changes nothing', async () => {
    await nftBackend().cleanup()
    expect(nft('list', 'tables')).toBe('')
  })
})
