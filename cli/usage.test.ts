import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// What wrong usage and bad surroundings get: a sentence, and the right exit code.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = new URL('../examples/state.yaml', import.meta.url).pathname

describe('usage', () => {
  test('--version and version print the version', async () => {
    const [flag, word] = await Promise.all([commands.run('kpng', '--version'), commands.run('kpng', 'version')])
    expect(flag).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
    expect(word.stdout).toBe(flag.stdout)
  })

  test.each([
    ['--help', 'kpng file -i examples/state.yaml to-api'],
    ['file --help', 'to-local'],
    ['file to-api --help', '--listen-tls-ca'],
    ['local to-json --help', 'kpng local to-json'],
  ])('%s shows an example or its flags', async (args, expected) => {
    const { code, stdout } = await commands.run('kpng', ...args.split(' '))
    expect(code).toBe(0)
    expect(stdout).toContain(expected)
  })

  test.each([
    ['playground --listen foo://bar', 2, /foo/],
    ['playground --kubeconfig /dev/null/kubeconfig', 1, /null/],
    ['playground --lab iptables', 2, /--lab takes nft, not "iptables"/],
    ['playground --lab nft --data-dir x', 2, /Leave out --data-dir/],
  ])('%s ends at once, with a reason', async (args, code, expected) => {
    expect(await commands.run('kpng', ...args.split(' '))).toMatchObject({
      code,
      stderr: expect.stringMatching(expected),
    })
  })

  test("verbosity in klog's spelling", async () => {
    const args = ['-v=2', 'file', '-i', state, 'to-local', '--node-name', 'vm-001', '--once', 'to-json']
    expect(await commands.run('kpng', ...args)).toMatchObject({ code: 0, stderr: expect.stringContaining('Synced') })
  })

  test.each([
    ['nonsense', /unknown command/],
    ['file to-nowhere', /unknown command/],
    ['file to-api --lissen x', /unknown option.*Did you mean --listen/s],
    ['local --api nowhere to-json', /"nowhere" is no API address/],
    ['local --error-delay soon to-json', /--error-delay takes a duration/],
    ['-v loud local to-json', /-v takes a whole number/],
    ['--log-format xml local to-json', /--log-format is text or json/],
    ['local --tls-key a.key to-json', /key was given without its certificate/],
    ['file -i x to-api --listen 127.0.0.1:1', /tcp:\/\//],
    ['file -i x to-api --local-api=false --globalv1-api=false', /Leave one of them on/],
  ])('%s is wrong usage: exit code 2 and a sentence', async (args, expected) => {
    const { code, stderr } = await commands.run('kpng', ...args.split(' '))
    expect(stderr).toMatch(expected)
    expect(stderr).not.toMatch(/\n {4}at /)
    expect(code).toBe(2)
  })

  test('completion prints a script for a shell', async () => {
    const { code, stdout } = await commands.run('kpng', 'completion', 'bash')
    expect(code).toBe(0)
    expect(stdout).toContain('kpng')
    const words = await commands.run('kpng', 'complete', '--', 'file', 'to-')
    expect(words.stdout).toContain('to-api')
  })
})

describe('bad surroundings: exit code 1 and what to do', () => {
  test('a state file that is not there', async () => {
    const { code, stderr } = await commands.run(
      'kpng',
      'file',
      '-i',
      '/nowhere/state.yaml',
      'to-api',
      '--listen',
      'tcp://127.0.0.1:0',
    )
    expect(stderr).toContain('/nowhere/state.yaml')
    expect(code).toBe(1)
  })

  test('a port that is in use', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const { code, stderr } = await commands.run(
      'kpng',
      'file',
      '-i',
      state,
      'to-api',
      '--listen',
      `tcp://127.0.0.1:${port}`,
    )
    server.close()
    expect(stderr).toMatch(new RegExp(`${port}.*use`))
    expect(code).toBe(1)
  })

  test('a TLS key that cannot be read, and one that is none', async () => {
    const folder = commands.folder()
    writeFileSync(join(folder, 'no.key'), 'hello')
    writeFileSync(join(folder, 'no.crt'), 'hello')
    const tls = (key: string) => [
      '--listen-tls-key',
      key,
      '--listen-tls-crt',
      join(folder, 'no.crt'),
      '--listen-tls-ca',
      join(folder, 'no.crt'),
    ]
    const [missing, wrong] = await Promise.all(
      ['gone.key', 'no.key'].map((key) =>
        commands.run('kpng', 'file', '-i', state, 'to-api', '--listen', 'tcp://127.0.0.1:0', ...tls(join(folder, key))),
      ),
    )
    expect(missing?.stderr).toContain('gone.key')
    expect(wrong?.stderr).toMatch(/no\.(key|crt)/)
    expect([missing?.code, wrong?.code]).toEqual([1, 1])
  })
})
