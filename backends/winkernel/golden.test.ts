import { expect, test } from 'vitest'
import { FakeHcn } from './testing/fake-hcn.js'
import { goldenText, kinds } from './testing/golden.js'

test('20 kinds of Services on two types of networks and three versions of HNS are as in golden.txt', async () => {
  expect(Object.keys(kinds)).toHaveLength(20)
  const text = await goldenText((version) => {
    const hcn = new FakeHcn()
    hcn.hnsVersion = version
    return hcn
  })
  await expect(text).toMatchFileSnapshot('testing/golden.txt')
})
