import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../core/testing/until.js'
import { watchConfigFile } from './watch-config-file.js'

let folder: string
let stop: AbortController
let changes: number
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-config-'))
  stop = new AbortController()
  changes = 0
})
afterEach(() => {
  stop.abort()
  rmSync(folder, { recursive: true })
})

const path = () => join(folder, 'config.conf')
const start = (pollIntervalMs = 60_000) =>
  watchConfigFile({
    path: path(),
    onChange: () => {
      changes++
    },
    log: silentLog,
    signal: stop.signal,
    quietMs: 20,
    pollIntervalMs,
  })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** As the kubelet does it: a folder with the files, a link `..data` to it, and a link to the file through that. */
function mount(name: string, text: string): void {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'config.conf'), text)
  symlinkSync(name, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
}

describe('a change is told once', () => {
  test('when the file is written', async () => {
    writeFileSync(path(), 'a')
    await start()
    writeFileSync(path(), 'b')
    await until('the change is told', () => changes === 1)
    writeFileSync(path(), 'c')
    await pause(100)
    expect(changes).toBe(1)
  })

  test('when another file takes its place', async () => {
    writeFileSync(path(), 'a')
    await start()
    writeFileSync(join(folder, 'new'), 'b')
    renameSync(join(folder, 'new'), path())
    await until('the change is told', () => changes === 1)
  })

  test('when a ConfigMap is swapped', async () => {
    mount('..1', 'a')
    symlinkSync('..data/config.conf', path())
    await start()
    mount('..2', 'b')
    await until('the change is told', () => changes === 1)
  })

  test('by looking, where nobody tells', async () => {
    mkdirSync(join(folder, 'far'))
    writeFileSync(join(folder, 'far', 'config.conf'), 'a')
    symlinkSync('far/config.conf', path())
    await start(50)
    writeFileSync(join(folder, 'far', 'config.conf'), 'b')
    await until('the change is told', () => changes === 1)
  })
})

describe('no change', () => {
  test('the same text again, in place or swapped in', async () => {
    mount('..1', 'a')
    symlinkSync('..data/config.conf', path())
    await start()
    mount('..2', 'a')
    writeFileSync(join(folder, '..2', 'config.conf'), 'a')
    await pause(150)
    expect(changes).toBe(0)
  })

  test('a file that is gone, until it is back with another text', async () => {
    writeFileSync(path(), 'a')
    await start()
    rmSync(path())
    await pause(100)
    expect(changes).toBe(0)
    writeFileSync(path(), 'b')
    await until('the change is told', () => changes === 1)
  })

  test('after the end', async () => {
    writeFileSync(path(), 'a')
    await start()
    stop.abort()
    writeFileSync(path(), 'b')
    await pause(100)
    expect(changes).toBe(0)
  })
})
