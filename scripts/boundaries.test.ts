import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
// @ts-expect-error: plain JavaScript, because it runs before anything is installed
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
    ['core/kubernetes/service.ts', '../sources/skips.js'],
    ['core/store/store.ts', '../kubernetes/service.js'],
    ['core/store/store.ts', '../../client/index.js'],
    ['core/store/store.ts', '@kpng/core/view'],
    ['client/run.ts', 'kpng'],
    ['diagnose/diagnose.ts', 'node:fs'],
    ['diagnose/diagnose.ts', '@kpng/linux'],
  ])('%s may not import %s', (file, specifier) => {
    expect(violation(file, specifier)).toEqual(expect.any(String))
  })

  test.each([
    ['client/run.ts', '@kpng/api'],
    ['backends/ebpf/backend.ts', '@kpng/backend-nft'],
    ['core/sinks/local/index.ts', '@kpng/client'],
    ['core/view/node-watch.ts', '../store/index.js'],
    ['core/sinks/api/index.ts', '../../view/index.js'],
    ['core/sources/api/index.ts', '../skips.js'],
    ['core/sources/file/index.ts', '../../store/index.js'],
    ['core/sources/file/index.ts', '../../kubernetes/service.js'],
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

describe('circles', () => {
  /** A checkout with these files, by path, each with the names that it imports. */
  function checkout(files: Record<string, string[]>): string {
    const root = mkdtempSync(join(tmpdir(), 'kpng-boundaries-'))
    onTestFinished(() => rmSync(root, { recursive: true }))
    for (const [file, imports] of Object.entries(files)) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), imports.map((name) => `import '${name}'\n`).join(''))
    }
    return root
  }
  const found = (files: Record<string, string[]>, allowed: string[][] = []) => check(checkout(files), allowed)

  test('files that import each other', () => {
    expect(
      found({
        'playground/start.ts': ['./a.js'],
        'playground/a.ts': ['./b.js', './c.js'],
        'playground/b.ts': ['./c.js'],
        'playground/c.ts': ['./a.js'],
      }),
    ).toEqual(['playground/a.ts → playground/c.ts → playground/a.ts: they import each other in a circle'])
  })

  test('folders that import each other, although their files do not', () => {
    expect(
      found({
        'backends/nft/rules/draw.ts': ['../kernel/names.js'],
        'backends/nft/kernel/writer.ts': ['../rules/text.js'],
        'backends/nft/kernel/names.ts': [],
        'backends/nft/rules/text.ts': [],
      }),
    ).toEqual(['backends/nft/kernel → backends/nft/rules → backends/nft/kernel: they import each other in a circle'])
  })

  test('a folder and one inside of it', () => {
    expect(
      found({
        'core/sources/kube/source.ts': ['./client/connect.js'],
        'core/sources/kube/client/connect.ts': ['../names.js'],
        'core/sources/kube/names.ts': [],
      }),
    ).toEqual(['core/sources/kube → core/sources/kube/client → core/sources/kube: they import each other in a circle'])
  })

  test.each([
    ['one way', { 'node/health/a.ts': ['../metrics/b.js'], 'node/metrics/b.ts': [] }],
    [
      'through the files of the package itself',
      { 'node/run.ts': ['./health/a.js'], 'node/health/a.ts': ['../ip.js'], 'node/ip.ts': [] },
    ],
    ['in tests', { 'node/a.ts': [], 'node/a.test.ts': ['./a.js'], 'node/testing/b.ts': ['../a.js'] }],
  ])('none: %s', (_, files) => expect(found(files as Record<string, string[]>)).toEqual([]))
})
