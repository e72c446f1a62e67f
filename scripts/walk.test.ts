import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import '../cli/testing/compiled.js'
import { whySkipped } from '../linux/testing/index.js'

// One change passes the files that CONTRIBUTING.md names, and no others. This test fails if somebody adds a file to the way.

const root = fileURLToPath(new URL('..', import.meta.url))

/** The files of a table in CONTRIBUTING.md, below its mark. */
function listed(walk: string): string[] {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  const table = text.split(`<!-- walk: ${walk} -->`)[1]?.split('\n\n')[0] ?? ''
  return [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, file = '']) => file).sort()
}

function walked(walk: string, command: readonly string[]): string[] {
  const [program = '', ...args] = [...command, process.execPath, join(root, 'scripts/walk.js'), walk]
  const { stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 300_000 })
  expect(stderr).toBe('')
  return stdout.trim().split('\n')
}

test('from the API server to Backend.sync: at most 21 files', () => {
  const files = walked('core', [])
  expect(files).toEqual(listed('core'))
  expect(files.length).toBeLessThanOrEqual(21)
})

const why = whySkipped('scripts/walk.test.ts (nft)', 'nft')

test.skipIf(why !== undefined)('from Backend.sync to the kernel: at most 20 files', () => {
  const files = walked('nft', ['unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'])
  expect(files).toEqual(listed('nft'))
  expect(files.length).toBeLessThanOrEqual(20)
})
