import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runInVm, whyNoVm } from './vm.js'

const why = whyNoVm('the VM')
const build = fileURLToPath(new URL('build', import.meta.url))

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-vm-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(why !== undefined)('the VM', () => {
  test('runs a command with the files of this machine, on a kernel that has SCTP and IPVS', {
    timeout: 300_000,
  }, async () => {
    const script = `pwd; ls package.json; echo lost > ${folder}/written; cat ${folder}/written; modprobe -a sctp ip_vs && echo both; exit 3`
    const { code, output } = await runInVm(['bash', '-c', script], { limitMs: 100_000 })
    expect(output.replaceAll('\r', '').split('\n')).toEqual([
      fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, ''),
      ...['package.json', 'lost', 'both', ''],
    ])
    expect(code).toBe(3)
    expect(existsSync(join(folder, 'written'))).toBe(false)
  })

  test('is stopped when the time is over, and leaves nothing', { timeout: 300_000 }, async () => {
    const jobs = () => readdirSync('/dev/shm').filter((name) => name.startsWith('kpng-vm.'))
    const before = jobs()
    await expect(runInVm(['sleep', '1000'], { limitMs: 1000 })).rejects.toThrow('The VM was stopped after 1 s.')
    expect(jobs().filter((name) => !before.includes(name))).toEqual([])
  })
})

test.skipIf(process.getuid?.() !== 0 || process.arch !== 'x64')('a machine without apt-get is told so', () => {
  for (const program of ['bash', 'dirname', 'id', 'readlink', 'uname']) {
    const path = spawnSync('which', [program], { encoding: 'utf8' }).stdout.trim()
    symlinkSync(path, join(folder, program))
  }
  const { status, stderr } = spawnSync('/bin/bash', [build], { env: { PATH: folder, HOME: folder }, encoding: 'utf8' })
  expect(stderr).toBe('The VM cannot be built: it is made of Debian packages, and this is not Debian.\n')
  expect(status).toBe(1)
})
