import { expect, test } from 'vitest'
import { catalogue } from './catalogue.js'
import { findingsPage } from './findings-page.js'

test('docs/findings.md is what the code says', async () => {
  await expect(findingsPage()).toMatchFileSnapshot('../docs/findings.md')
})

test('every finding is on the page, with a sentence for the cause and one for the repair', () => {
  const page = findingsPage()
  for (const [code, { why, todo }] of Object.entries(catalogue)) {
    expect(page).toContain(`| ${code} |`)
    expect(`${why} ${todo}`, code).toMatch(/\. .*\.$/)
  }
})
