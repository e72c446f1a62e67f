import { expect, test } from 'vitest'
import { fileAdvice } from './index.js'

test.each([
  ['EACCES', /permissions/],
  ['EMFILE', /^(?!.*permissions).*limit of open files/],
  ['ENOSPC', /full/],
  ['EISDIR', /^$/],
])('the advice for a file that fails with %s', (code, advice) => {
  expect(fileAdvice(Object.assign(new Error(code), { code }))).toMatch(advice)
})
