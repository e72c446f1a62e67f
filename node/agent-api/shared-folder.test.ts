import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

// Without XDG_RUNTIME_DIR, the socket of a user is in a folder in /tmp, which anybody could have made first.

const user = 64_123
const folder = `/tmp/kpng-${user}`
const script = `
import { agentSocketPath, askAgent, serveOnSocket } from ${JSON.stringify(new URL('../dist/agent-api/index.js', import.meta.url).href)}
process.setgid(${user})
process.setuid(${user})
const path = agentSocketPath()
try {
  if (process.argv[1] === 'ask') await askAgent(path, '/v1/status')
  else await (await serveOnSocket(path, () => {})).close()
  console.log('done ' + path)
} catch (error) {
  console.log(error.message)
}
`

const run = (what: 'ask' | 'serve') => {
  const { XDG_RUNTIME_DIR: _, RUNTIME_DIRECTORY: __, ...env } = process.env
  return execFileSync(process.execPath, ['--input-type=module', '--eval', script, what], { encoding: 'utf8', env })
}

describe.skipIf(process.getuid?.() !== 0 || existsSync(folder))('the folder in /tmp', () => {
  const remove = () => rmSync(folder, { recursive: true, force: true })
  beforeEach(remove)
  afterEach(remove)

  test('is made for its user alone', () => {
    expect(run('serve')).toBe(`done ${folder}/agent.sock\n`)
    expect(run('serve')).toBe(`done ${folder}/agent.sock\n`)
  })

  test.each<[string, () => void]>([
    ['is of another user', () => mkdirSync(folder, { mode: 0o700 })],
    [
      'is open to others',
      () => {
        mkdirSync(folder)
        chownSync(folder, user, user)
        chmodSync(folder, 0o755)
      },
    ],
    ['is a link', () => symlinkSync('/tmp', folder)],
  ])('is not believed if it %s', (_, make) => {
    make()
    for (const what of ['ask', 'serve'] as const)
      expect(run(what)).toContain(`${folder} is not a folder that only you may use`)
  })
})
