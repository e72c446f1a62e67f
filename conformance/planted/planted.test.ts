import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { cases } from '../cases/index.js'
import { matchesAny } from '../evaluation/glob.js'
import faults from './in-code.json' with { type: 'json' }

const root = join(import.meta.dirname, '..', '..')

// `kpng conformance --planted` takes minutes. Here is only checked that it still finds what to change. It changes the compiled files, in which these texts stand as in the
// sources.
it.each(faults)('a fault can be planted: $name', ({ file, find, put, only }) => {
  const source = readFileSync(join(root, file.replace('/dist/', '/').replace(/\.js$/, '.ts')), 'utf8')
  expect(source.split(find).length - 1).toBe(1)
  expect(put).not.toBe(find)
  for (const pattern of only) expect(cases.some(({ id }) => matchesAny([pattern], id))).toBe(true)
})
