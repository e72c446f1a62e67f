import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

// What decides without a machine runs in a browser: it imports nothing of Node.

const root = fileURLToPath(new URL('..', import.meta.url))

/** Which modules of Node end up in a bundle for browsers, and who imports them. */
async function nodeImportsOf(entry: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    conditions: ['kpng-source'],
    external: ['node:*', '@grpc/grpc-js'],
    write: false,
    metafile: true,
    logLevel: 'silent',
  })
  const [output] = Object.values(metafile.outputs)
  return Object.entries(metafile.inputs).flatMap(([file, { imports }]) =>
    output?.inputs[file] ? imports.filter(({ external }) => external).map(({ path }) => `${file}: ${path}`) : [],
  )
}

test.each([
  'api/index.ts',
  'client/ports.ts',
  'client/node-state.ts',
  'core/store/index.ts',
  'core/kubernetes/index.ts',
  'core/view/index.ts',
  'core/view/selection.ts',
  'dataplane/index.ts',
  'diagnose/index.ts',
])('%s runs in a browser', async (entry) => expect(await nodeImportsOf(entry)).toEqual([]))

test('what needs Node is found', async () => {
  expect(await nodeImportsOf('api/node.ts')).toContain('api/tls.ts: node:crypto')
})
