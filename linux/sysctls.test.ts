import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Log, silentLog } from '@kpng/api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { formatLine } from '../client/log.js'
import { applySetting, sysctlPath } from './sysctls.js'

let root: string
let lines: string[]
let log: Log
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kpng-sysctls-'))
  lines = []
  const add = (message: string, fields = {}) => void lines.push(formatLine(message, fields))
  log = { ...silentLog, info: add, warn: add }
})
afterEach(() => rmSync(root, { recursive: true }))

const path = sysctlPath('net.ipv4.ip_forward')
const put = (value: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), `${value}\n`)
}
const now = () => Number(readFileSync(join(root, path), 'utf8'))

test('a sysctl has a file', () => expect(path).toBe('proc/sys/net/ipv4/ip_forward'))

test('a value that is right is left, another one is changed, and the log says so', async () => {
  put('1')
  expect(await applySetting({ path, value: 1 }, { log, root })).toBe('kept')
  expect(lines).toEqual([])
  expect(await applySetting({ path, value: 5 }, { log, root })).toBe('set')
  expect(now()).toBe(5)
  expect(lines).toEqual([`Changed a kernel setting path="${join(root, path)}" before=1 value=5`])
})

test('a greater value is left if it need only be large enough', async () => {
  put('10')
  expect(await applySetting({ path, value: 5, atLeast: true }, { log, root })).toBe('kept')
  expect(await applySetting({ path, value: 15, atLeast: true }, { log, root })).toBe('set')
  expect(now()).toBe(15)
})

test('a missing file is not made, and the hint says what to do', async () => {
  expect(await applySetting({ path, value: 1 }, { log, root })).toBe('failed')
  expect(await applySetting({ path, value: 1, ifMissing: 'Load the module x.' }, { log, root })).toBe('failed')
  expect(lines[0]).toContain('There is no such file. This kernel does not have the setting.')
  expect(lines[1]).toContain('Load the module x.')
  expect(now).toThrow('ENOENT')
})
