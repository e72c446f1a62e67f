import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endpoint, FakeCore } from '@kpng/client/testing'
import { expect, onTestFinished, test } from 'vitest'
import { runWithoutDescriptors, useUpDescriptors } from '../../linux/testing/bundle.js'
import { calloutBackend } from './index.js'

/** A program of somebody's, as a shell script. */
function program(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-callout-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'program')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

function call(script: string, timeoutMs = 10_000) {
  let printed = ''
  const backend = calloutBackend({
    program: script.startsWith('/') ? script : program(script),
    timeoutMs,
    write: (text) => {
      printed += text
    },
  })
  const core = new FakeCore(backend)
  onTestFinished(() => core.stop())
  core.set({ name: 'web', endpoints: [endpoint('10.244.1.5')] })
  return { printed: () => printed, core, done: core.sync() }
}

test('it gets the Services of the node on standard input, again on each change', async () => {
  const { printed, core, done } = call(`exec tr -d '\\n'`)
  await done
  expect(JSON.parse(printed())).toMatchObject({
    Service: { Name: 'web' },
    Endpoints: [{ IPs: { V4: ['10.244.1.5'] } }],
  })
  await core.set({ name: 'web' }).sync()
  expect(printed()).toContain('"Endpoints":null')
})

test('one that failed is called again', async () => {
  const { printed, core, done } = call('cat >/dev/null; mkdir "$0.tried" 2>/dev/null && exit 1; echo again')
  await expect(done).rejects.toThrow(/ended with code 1/)
  await core.sync()
  expect(printed()).toBe('again\n')
})

test('what it prints is passed on, all of it', async () => {
  const { printed, done } = call('cat >/dev/null; seq 1 20000')
  await done
  expect(printed().trim().split('\n')).toHaveLength(20_000)
})

test('something that it leaves running does not hold up the next call', async () => {
  const started = performance.now()
  const { printed, done } = call('cat >/dev/null; echo done; sleep 4 &')
  await done
  expect(printed()).toBe('done\n')
  expect(performance.now() - started).toBeLessThan(3000)
})

test.each([
  ['a failure', 'exit 3', 10_000, /ended with code 3/],
  [
    'one that does not end, whatever it is asked',
    "trap '' TERM; sleep 3",
    100,
    /did not end within 0.1 s and was killed/,
  ],
  ['one that is not there', '/no/such/program', 10_000, /CALLOUT: \/no\/such\/program is not installed/],
])('%s is an error that says so', async (_, script, timeoutMs, expected) => {
  await expect(call(script, timeoutMs).done).rejects.toThrow(expected)
})

test('a process without file descriptors goes on, and says what to do', async () => {
  const { status, printed } = await runWithoutDescriptors(
    `import { NodeState } from '@kpng/client'
    import { calloutBackend } from './index.ts'
    const backend = calloutBackend({ program: 'true' })
    ${useUpDescriptors}
    for (let time = 1; time <= 2; time++) {
      await backend.sync(new NodeState('n'), ${JSON.stringify(changes)}).catch((error) => console.log(error.message))
    }
    console.log('goes on')`,
    new URL(import.meta.url),
  )
  const sentence =
    'CALLOUT: The program "true" cannot be started: spawn true EMFILE. This process has no file descriptors left. Raise its limit'
  expect(printed.split('\n').map((line) => line.slice(0, sentence.length))).toEqual([sentence, sentence, 'goes on', ''])
  expect(status).toBe(0)
})
