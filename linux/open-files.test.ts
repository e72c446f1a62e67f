import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bundleCode, programPath } from './testing/bundle.js'

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!hasPrlimit) console.warn('SKIPPED: warnings about open files: prlimit is not installed')

test.runIf(hasPrlimit)('a process that nears its limit says so before it is reached, and when it is over', async () => {
  const program = programPath('open-files')
  const code = `
    import { closeSync, openSync } from 'node:fs'
    import { openFiles, openFilesLimit, watchOpenFiles } from './open-files.ts'
    const limit = openFilesLimit()
    console.log('limit', limit)
    const stop = new AbortController()
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    const said = []
    const log = { error: () => {}, detail: () => {}, shows: () => false,
      warn: (text, fields) => said.push('warn ' + text.slice(0, 24) + ' ' + Object.keys(fields)),
      info: (text) => said.push('info ' + text) }
    const settled = async (count) => { while (said.length < count) await wait(5) }
    watchOpenFiles({ log, signal: stop.signal, checkIntervalMs: 5 })
    await wait(50)
    const files = []
    const fill = (share) => { while (openFiles() < limit * share) files.push(openSync('/dev/null')) }
    fill(0.79)
    await wait(50)
    console.log('below', said.length)
    fill(0.9)
    await settled(1)
    fill(1)
    await wait(50)
    console.log('full', said.length, openFiles() === limit)
    for (const file of files.splice(0)) closeSync(file)
    await settled(2)
    fill(0.9)
    await settled(3)
    console.log(said.join('\\n'))
    stop.abort()`
  try {
    await bundleCode(code, new URL(import.meta.url), program)
    const limited = ['--nofile=200:300', process.execPath, program]
    const { stdout, stderr } = spawnSync('prlimit', limited, { encoding: 'utf8', timeout: 20_000 })
    expect(stderr).toBe('')
    const warning = 'warn Most of the files that k open,limit,sockets,netlinkSockets,others'
    expect(stdout.trim().split('\n')).toEqual([
      // The hard limit: Node takes what it may have.
      'limit 300',
      'below 0',
      'full 1 true',
      warning,
      'info The number of open files is well below the limit again',
      warning,
    ])
  } finally {
    rmSync(program, { force: true })
  }
})
