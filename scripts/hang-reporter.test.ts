import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

test('a file that hangs while it is loaded is named, and fails the run', {
  timeout: 300_000,
}, async () => {
  // Below node_modules, so that the files find vitest.
  const folder = mkdtempSync(join(root, 'node_modules', '.kpng-hang-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const reporter = JSON.stringify(join(root, 'scripts', 'hang-reporter.js'))
  writeFileSync(
    join(folder, 'vitest.config.mjs'),
    `export default { test: {
      include: ['*.test.mjs'], exclude: [], pool: 'forks',
      reporters: ['default', [${reporter}, { limitMs: 1000, checkEveryMs: 100 }]],
    } }`,
  )
  writeFileSync(join(folder, 'good.test.mjs'), "import { test } from 'vitest'\ntest('is quick', () => {})\n")
  writeFileSync(join(folder, 'hangs.test.mjs'), 'for (;;) {}\n')
  const vitest = spawn(join(root, 'node_modules', '.bin', 'vitest'), ['run', '--root', folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void vitest.kill('SIGKILL'))
  let output = ''
  for (const stream of [vitest.stdout, vitest.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(vitest, 'close')
  expect(output).toMatch(/hangs\.test\.mjs made no progress for 1 s, loading the file\./)
  expect(output).not.toMatch(/good\.test\.mjs made no progress/)
  if (process.platform === 'linux') expect(output).toMatch(/Worker \d+:\n[\s\S]*: R \(running\)/)
  expect(code).toBe(1)
})
