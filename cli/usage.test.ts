import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// What works on every command line. bad-input.test.ts has what does not, help.test.ts the help.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = new URL('../examples/state.yaml', import.meta.url).pathname

test('--version and version print the version', async () => {
  const [flag, word] = await Promise.all([commands.run('kpng', '--version'), commands.run('kpng', 'version')])
  expect(flag).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  expect(word.stdout).toBe(flag.stdout)
})

test.each(['kpng', 'kpng-json', 'kpng-callout'])('%s --help succeeds', async (name) => {
  const { code, stdout } = await commands.run(name, '--help')
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringMatching(new RegExp(`^Usage: ${name} \\[flags\\]`)),
  })
})

test.each(['-v=2', '--v=2'])("verbosity in klog's spelling: %s", async (verbosity) => {
  const args = [verbosity, 'file', '-i', state, 'to-local', '--node-name', 'vm-001', '--once', 'to-json']
  expect(await commands.run('kpng', ...args)).toMatchObject({ code: 0, stderr: expect.stringContaining('Synced') })
})

test('--listen takes host:port', async () => {
  const server = commands.start('kpng', 'file', '-i', state, 'to-api', '--listen', '127.0.0.1:0')
  await server.says('Serving the kpng API')
})
