import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { defaultSettings } from '../config/settings.js'
import { applyConntrack } from './conntrack.js'
import { restoreSysctls } from './sysctl-record.js'

const sysctl = (name: string) => `proc/sys/net/netfilter/nf_conntrack_${name}`
const [max, established, closeWait] = [
  sysctl('max'),
  sysctl('tcp_timeout_established'),
  sysctl('tcp_timeout_close_wait'),
]
const hashSize = 'sys/module/nf_conntrack/parameters/hashsize'
const before = { [max]: 1000, [hashSize]: 5000, [established]: 43_200, [closeWait]: 3600 }

// The files of a test are not cut when they are written, as those of the kernel are: old and new values have the same length.
let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kpng-sysctls-'))
  for (const [path, value] of Object.entries(before)) put(path, value)
})
afterEach(() => rmSync(root, { recursive: true }))

function put(path: string, value: number): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), `${value}\n`)
}
const now = () =>
  Object.fromEntries(Object.keys(before).map((path) => [path, Number(readFileSync(join(root, path), 'utf8'))]))
const records = () => readdirSync(join(root, 'run/kpng'))

const { lines, log } = recordingLog()
const apply = (settings = {}) =>
  applyConntrack({
    settings: { ...defaultSettings, conntrackMin: 1, conntrackMaxPerCore: 1000, ...settings },
    log,
    cores: 4,
    root,
  })
const restore = () => restoreSysctls({ log, root })

test('cleanup restores what kpng changed, and forgets it', async () => {
  await apply()
  expect(now()).toEqual({ [max]: 4000, [hashSize]: 5000, [established]: 86_400, [closeWait]: 3600 })
  expect(records()).toHaveLength(1)
  expect(await restore()).toEqual([])
  expect(now()).toEqual(before)
  expect(records()).toEqual([])
  expect(await restore()).toEqual([])
})

test('a setting that was changed after kpng stays', async () => {
  await apply()
  put(established, 72_000)
  expect(await restore()).toEqual([])
  expect(now()).toEqual({ ...before, [established]: 72_000 })
  expect(lines.join('\n')).toMatch(/Left a kernel setting.*tcp_timeout_established.*.*"now":72000,"setByKpng":86400/)
})

test('after two changes by kpng the first value comes back', async () => {
  await apply()
  await apply()
  await apply({ conntrackTcpEstablishedTimeoutMs: 60_000_000 })
  expect(now()[established]).toBe(60_000)
  await restore()
  expect(now()).toEqual(before)
})

test('if something else changed it in between, its value comes back', async () => {
  await apply()
  put(established, 72_000)
  await apply()
  await restore()
  expect(now()[established]).toBe(72_000)
})

test('a record that cannot be written does not stop kpng', async () => {
  writeFileSync(join(root, 'run'), 'not a folder')
  await apply()
  expect(now()[max]).toBe(4000)
  expect(lines.at(-1)).toMatch(/^I Cannot remember the kernel settings.*will not restore them/)
})

test('what cannot be restored is reported, stays in the record, and does not stop the rest', async () => {
  await apply()
  rmSync(join(root, established))
  expect(await restore()).toEqual([expect.stringMatching(/tcp_timeout_established cannot be set back to 43200/)])
  expect(Number(readFileSync(join(root, max), 'utf8'))).toBe(1000)
  put(established, 86_400)
  expect(await restore()).toEqual([])
  expect(now()).toEqual(before)
})

test('a broken record is reported by cleanup', async () => {
  await apply()
  writeFileSync(join(root, 'run/kpng', records()[0] as string), '{')
  expect(await restore()).toEqual([expect.stringMatching(/sysctls-\d+\.json, cannot be read/)])
})

test('a record that cannot be written again is reported with the rest, and nothing is thrown', async () => {
  await apply()
  rmSync(join(root, established))
  mkdirSync(join(root, 'run/kpng', `${records()[0]}.new`))
  const failed = await restoreSysctls({ log, root })
  expect(failed).toEqual([
    expect.stringContaining('cannot be set back to'),
    expect.stringMatching(/record of changed kernel settings, .*json, cannot be written: .* Run it as root\.$/),
  ])
})
