import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { watchFile } from '../../sources/file/index.js'
import { Store } from '../../store/index.js'
import { poll, recordingLog } from '../../testing/until.js'
import { withoutRoot } from '../../testing/without-root.js'
import { type WriteStateFileOptions, writeStateFile } from './write-state-file.js'

let folder: string
let file: string
let recorded: ReturnType<typeof recordingLog>
let stop: AbortController
let store: Store
let running: Promise<void>[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-to-file-'))
  file = join(folder, 'state.yaml')
  recorded = recordingLog()
  stop = new AbortController()
  store = new Store()
  running = []
})

afterEach(async () => {
  stop.abort()
  await Promise.allSettled(running)
  await rm(folder, { recursive: true, force: true })
})

const lines = () => recorded.lines.filter((line) => /^[EWI]/.test(line))

function start(options: Partial<WriteStateFileOptions> = {}): Promise<void> {
  const promise = writeStateFile({
    store,
    path: file,
    log: recorded.log,
    signal: stop.signal,
    minIntervalMs: 20,
    ...options,
  })
  promise.catch(() => {})
  running.push(promise)
  return promise
}

const set = (name: string) =>
  store.update((transaction) => transaction.setService(create(localv1.ServiceSchema, { namespace: 'default', name })))
const sync = () => store.update((transaction) => transaction.setSynced('services', 'endpoints', 'nodes'))

const names = (text: string) => (text.match(/^ {4}name: .*$/gm) ?? []).map((line) => line.slice(10)).join()
const written = () => readFile(file, 'utf8').then(names, () => 'no file')

describe('writing', () => {
  it('only once the store is synced, then after each change', async () => {
    start()
    set('a')
    await sleep(60)
    expect(await written()).toBe('no file')
    sync()
    await expect.poll(written, poll).toBe('a')
    set('b')
    await expect.poll(written, poll).toBe('a,b')
    store.update((transaction) => transaction.deleteService('default', 'a'))
    await expect.poll(written, poll).toBe('b')
  })

  it('changes that come close together are written together, the last one too', async () => {
    let writes = 0
    let text = ''
    const standardOutput = new Writable({
      write(chunk, _encoding, done) {
        writes++
        text = String(chunk)
        done()
      },
    })
    const minIntervalMs = 100
    start({ path: '-', standardOutput, minIntervalMs })
    sync()
    await expect.poll(() => writes, poll).toBe(1)
    const started = performance.now()
    for (let count = 0; count < 50; count++) {
      set(`s${count}`)
      await sleep(1)
    }
    await expect.poll(() => text.includes('name: s49\n'), poll).toBe(true)
    expect(writes).toBeGreaterThan(1)
    expect(writes).toBeLessThan((performance.now() - started) / minIntervalMs + 3)
  })

  it('what was not written yet is written when it is stopped', async () => {
    const done = start({ minIntervalMs: 60_000 })
    sync()
    await expect.poll(written, poll).toBe('')
    set('late')
    await sleep(30)
    expect(await written()).toBe('')
    stop.abort()
    await done
    expect(await written()).toBe('late')
  })

  it('a change that is not in the file does not write it', async () => {
    start()
    set('a')
    sync()
    await expect.poll(written, poll).toBe('a')
    const before = (await stat(file)).ino
    const source = { namespace: 'default', name: 's', service: 'nobody', endpoints: [] }
    store.update((transaction) => transaction.setEndpoints(source))
    await sleep(80)
    expect((await stat(file)).ino).toBe(before)
  })

  it('is atomic: readers see a whole file, and nothing else stays in the folder', async () => {
    start({ minIntervalMs: 0 })
    sync()
    await expect.poll(written, poll).toBe('')
    const counts = new Set<number>()
    for (let round = 0; round < 40; round++) {
      store.update((transaction) => {
        for (let index = 0; index < 200; index++) {
          transaction.setService(
            create(localv1.ServiceSchema, { namespace: 'default', name: `s${index}`, type: `t${round}` }),
          )
        }
      })
      await sleep(2)
      counts.add((await written()).split(',').filter(Boolean).length)
    }
    expect([...counts].filter((count) => count !== 0 && count !== 200)).toEqual([])
    stop.abort()
    await Promise.all(running)
    expect(await readdir(folder)).toEqual(['state.yaml'])
  })

  it('has mode 0644, less what the umask takes', async () => {
    const before = process.umask(0o027)
    try {
      start()
      sync()
      await expect.poll(written, poll).toBe('')
      expect((await stat(file)).mode & 0o777).toBe(0o640)
    } finally {
      process.umask(before)
    }
  })

  it('a link stays a link', async () => {
    await mkdir(join(folder, 'real'))
    await writeFile(join(folder, 'real', 'x.yaml'), 'old')
    await symlink(join('real', 'x.yaml'), file)
    start()
    set('a')
    sync()
    await expect.poll(written, poll).toBe('a')
    expect(await readlink(file)).toBe(join('real', 'x.yaml'))
  })
})

describe('failures', () => {
  it.each([
    [
      'a folder that does not exist',
      () => join(folder, 'no', 'state.yaml'),
      'unavailable',
      'does not exist. Create it',
    ],
    ['a folder in place of the file', () => folder, 'usage', 'is a folder'],
    ['a file in place of the folder', () => join(file, 'x.yaml'), 'unavailable', 'cannot be written to'],
  ])('%s: rejected at once', async (_, path, code, message) => {
    await writeFile(file, 'x')
    await expect(start({ path: path() })).rejects.toMatchObject({
      name: 'KpngError',
      code,
      message: expect.stringContaining(message),
    })
  })

  it('no rights: rejected at once', async () => {
    await chmod(folder, 0o555)
    await withoutRoot(() => expect(start()).rejects.toMatchObject({ code: 'unavailable' }))
  })

  it('a full disk at start: rejected', async () => {
    const done = start({ path: '/dev/full' })
    sync()
    await expect(done).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('/dev/full') })
  })

  it('a later failure is told once, tried again at the next change, and told when it is over', async () => {
    const path = join(folder, 'sub', 'state.yaml')
    await mkdir(join(folder, 'sub'))
    const now = () => readFile(path, 'utf8').then(names, () => 'no file')
    start({ path, retryMs: 60_000 })
    set('a')
    sync()
    await expect.poll(now, poll).toBe('a')
    await rm(join(folder, 'sub'), { recursive: true })
    set('b')
    await expect.poll(() => lines().length, poll).toBe(1)
    expect(lines()[0]).toContain(path)
    set('c')
    await sleep(80)
    expect(lines()).toHaveLength(1)
    await mkdir(join(folder, 'sub'))
    set('d')
    await expect.poll(now, poll).toBe('a,b,c,d')
    await expect.poll(() => lines().length, poll).toBe(2)
    expect(lines()[1]).toContain('can be written again')
  })

  it('without another change it tries again after a while', async () => {
    const path = join(folder, 'sub', 'state.yaml')
    await mkdir(join(folder, 'sub'))
    const now = () => readFile(path, 'utf8').then(names, () => 'no file')
    start({ path, retryMs: 30 })
    sync()
    await expect.poll(now, poll).toBe('')
    await rm(join(folder, 'sub'), { recursive: true })
    set('b')
    await expect.poll(() => lines().length, poll).toBe(1)
    await mkdir(join(folder, 'sub'))
    await expect.poll(now, poll).toBe('b')
  })
})

describe('standard output', () => {
  it('gets one document a change', async () => {
    let text = ''
    const standardOutput = new Writable({
      write(chunk, _encoding, done) {
        text += String(chunk)
        done()
      },
    })
    start({ path: '/dev/stdout', standardOutput })
    sync()
    await expect.poll(() => text, poll).toBe('nodes: []\nservices: []\n')
    set('a')
    await expect.poll(() => names(text), poll).toBe('a')
    expect(text.startsWith('nodes: []\nservices: []\n---\nnodes: []\nservices:\n')).toBe(true)
  })

  it('is gone: rejected', async () => {
    const standardOutput = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
    const done = start({ path: '-', standardOutput })
    sync()
    await expect(done).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('EPIPE') })
  })
})

it('to-file → file: another store follows', async () => {
  const follower = new Store()
  start()
  set('a')
  sync()
  await expect.poll(written, poll).toBe('a')
  running.push(
    watchFile({
      path: file,
      store: follower,
      log: recorded.log,
      signal: stop.signal,
      settleMs: 10,
      pollIntervalMs: 60_000,
    }),
  )
  const followed = () =>
    follower
      .entries()
      .map(({ name }) => name)
      .sort()
      .join()
  await expect.poll(followed, poll).toBe('a')
  set('b')
  await expect.poll(followed, poll).toBe('a,b')
  expect(follower.revision).toBe(2)
})
