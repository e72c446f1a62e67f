import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { unchangedPages } from './program-pages.js'
import { bundleCode, programPath } from './testing/bundle.js'

/** One mapping as the kernel prints it. */
const mapping = (head: string, anonymousKb: number) => `${head}
Size:               1024 kB
Rss:                 512 kB
Anonymous:      ${String(anonymousKb).padStart(8)} kB
VmFlags: rd mr mw me`

describe('the pages of a file that are as in the file', () => {
  const node = '/usr/bin/node'
  test.each([
    ['read and executed', 'r-xp', node, 0, [{ from: 0x1000, to: 0x3000 }]],
    ['read only', 'r--p', node, 0, [{ from: 0x1000, to: 0x3000 }]],
    ['changed by the process, such as addresses that the loader filled in', 'r--p', node, 8, []],
    ['writable', 'rw-p', node, 0, []],
    ['of another file', 'r-xp', '/usr/lib/libc.so.6', 0, []],
    ['of no file', 'r-xp', '', 0, []],
  ] as const)('%s', (_, rights, path, anonymousKb, expected) => {
    const head = `1000-3000 ${rights} 00000000 fe:00 12345                      ${path}`
    expect(unchangedPages(mapping(head, anonymousKb), node)).toEqual(expected)
  })
})

test.runIf(process.platform === 'linux')('most pages of Node leave the resident set, and Node goes on', async () => {
  const program = programPath('pages')
  const code = `
    import { readFileSync } from 'node:fs'
    import { releaseProgramPages } from './program-pages.js'
    const residentKb = () => Number(/^RssFile:\\s+(\\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
    const before = residentKb()
    await releaseProgramPages()
    const after = residentKb()
    console.log(JSON.stringify({ before, after, sum: [1, 2, 3].reduce((a, b) => a + b) }))`
  try {
    await bundleCode(code, new URL(import.meta.url), program)
    const { stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' })
    expect(stderr).toBe('')
    const { before, after, sum } = JSON.parse(stdout)
    expect(after).toBeLessThan(before / 2)
    expect(sum).toBe(6)
  } finally {
    rmSync(program, { force: true })
  }
})
