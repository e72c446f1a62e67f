import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

const entry = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const bundle = async (name: string) => {
  const { outputFiles } = await build({
    entryPoints: [entry(name)],
    bundle: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'kpng',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}

test('all but what needs Node is bundled for browsers, and runs without anything of Node', async () => {
  const page = createContext({ TextEncoder, TextDecoder })
  runInContext(await bundle('index.ts'), page)
  expect(runInContext('kpng.parseIp("FD00::0:1").text', page)).toBe('fd00::1')
  expect(runInContext('kpng.placeOf("é")', page)).toBe(513_660_410)
})

test('what needs Node is not', async () => {
  await expect(bundle('node.ts')).rejects.toThrow(/node:crypto/)
})
