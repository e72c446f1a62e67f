import { describe, expect, test } from 'vitest'
// @ts-expect-error: plain JavaScript, since it runs before anything is installed
import { check, importsOf, violation } from './boundaries.js'

describe('the architecture', () => {
  test.each([
    ['api/index.ts', '@kpng/client'],
    ['client/run.ts', '@kpng/core/store'],
    ['backends/json/index.ts', '@kpng/core/store'],
    ['backends/json/index.ts', '@kpng/backend-callout'],
    ['backends/json/index.ts', '../callout/index.js'],
    ['playground/index.ts', '@kpng/client'],
    ['core/store/store.ts', '../view/index.js'],
    ['core/store/store.ts', '../sources/skips.js'],
    ['core/view/selection.ts', '../sinks/api/index.js'],
    ['core/sinks/api/index.ts', '../../sources/file/index.js'],
    ['core/sources/file/index.ts', '../../view/index.js'],
    ['core/store/store.ts', '../../client/index.js'],
    ['core/store/store.ts', '@kpng/core/view'],
    ['client/run.ts', 'kpng'],
  ])('%s may not import %s', (file, specifier) => {
    expect(violation(file, specifier)).toEqual(expect.any(String))
  })

  test.each([
    ['client/run.ts', '@kpng/api'],
    ['core/sinks/local/index.ts', '@kpng/client'],
    ['core/view/node-watch.ts', '../store/index.js'],
    ['core/sinks/api/index.ts', '../../view/index.js'],
    ['core/sources/api/index.ts', '../skips.js'],
    ['core/sources/file/index.ts', '../../store/index.js'],
    ['cli/main.ts', '@kpng/core/store'],
    ['core/store/hash.ts', 'xxhash-wasm'],
    ['api/log.ts', 'node:fs'],
  ])('%s may import %s', (file, specifier) => {
    expect(violation(file, specifier)).toBeUndefined()
  })

  test('imports of every form are seen', () => {
    const text = [
      "import a from 'a'",
      "import { b,\n  c } from 'b'",
      "export * from 'c'",
      "import type { d } from 'd'",
      "const e = await import('e')",
      "import 'f'",
      "export { g } from 'g'",
    ].join('\n')
    expect(importsOf(text).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  test('this checkout keeps it', () => {
    expect(check(new URL('..', import.meta.url).pathname)).toEqual([])
  })
})
