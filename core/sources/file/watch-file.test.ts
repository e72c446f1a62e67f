import { appendFile, chmod, mkdir, mkdtemp, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatLine, type Log } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Store } from '../../store/index.js'
import { withoutRoot } from '../../testing/without-root.js'
import { Skips } from '../skips.js'
import { type WatchFileOptions, watchFile } from './watch-file.js'

let folder: string
let file: string
let lines: string[]
let stop: AbortController
let running: Promise<void> | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-file-'))
  file = join(folder, 'state.yaml')
  lines = []
  stop = new AbortController()
  running = undefined
})

afterEach(async () => {
  stop.abort()
  await running?.catch(() => {})
  await rm(folder, { recursive: true, force: true })
})

const collect = (severity: string) => (message: string, fields?: object) => {
  lines.push(`${severity} ${formatLine(message, { ...fields })}`)
}
const log: Log = {
  error: collect('E'),
  warn: collect('W'),
  info: collect('I'),
  detail: () => {},
  shows: () => false,
}
const errors = () => lines.filter((line) => line.startsWith('E'))

const state = (...names: string[]) => `services:\n${names.map((name) => `- service: { name: ${name} }\n`).join('')}`

function start(options: Partial<WatchFileOptions> = {}): Store {
  const store = new Store()
  running = watchFile({ path: file, store, log, signal: stop.signal, settleMs: 20, ...options })
  return store
}

const served = (store: Store) =>
  store
    .entries()
    .filter(({ service }) => service)
    .map(({ name }) => name)
    .sort()
    .join()

/** Waits until something is so; fails with what was there instead. */
async function eventually(read: () => unknown, expected: unknown, withinMs = 3000): Promise<void> {
  const end = Date.now() + withinMs
  while (read() !== expected && Date.now() < end) await sleep(5)
  expect(read()).toBe(expected)
}

/** No poll within the test: only what the folder tells counts. */
const noPoll = { pollIntervalMs: 60_000 }

describe('at start', () => {
  it('serves the file and is synced', async () => {
    await writeFile(file, state('a', 'b'))
    const store = start()
    await eventually(() => served(store), 'a,b')
    expect(store.synced).toBe(true)
  })

  it('resolves when it is stopped', async () => {
    await writeFile(file, state('a'))
    const store = start()
    await eventually(() => store.synced, true)
    stop.abort()
    await expect(running).resolves.toBeUndefined()
  })

  it.each([
    ['a path that does not exist', undefined, 'unavailable', 'does not exist'],
    ['a mistake', 'services: none', 'invalid', 'state.yaml:1:11: services is "none"; a list was expected.'],
    ['no YAML', 'a: "', 'invalid', 'state.yaml:1:5: This is not YAML'],
  ])('rejects %s and logs nothing itself', async (_, text, code, message) => {
    if (text !== undefined) await writeFile(file, text)
    const store = start()
    await expect(running).rejects.toMatchObject({ name: 'KpngError', code, message: expect.stringContaining(message) })
    expect(store.synced).toBe(false)
    expect(lines).toEqual([])
  })

  it('rejects a file that may not be read', async () => {
    await writeFile(file, state('a'))
    await chmod(file, 0)
    await chmod(dirname(file), 0o755)
    await withoutRoot(async () => {
      start()
      await expect(running).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it('an empty file is an empty state', async () => {
    await writeFile(file, '')
    const store = start()
    await eventually(() => store.synced, true)
    expect(served(store)).toBe('')
  })
})

describe('changes are seen through the folder, without a poll', () => {
  it('written in place', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await eventually(() => served(store), 'a')
    await writeFile(file, state('a', 'b'))
    await eventually(() => served(store), 'a,b')
    await appendFile(file, '- service: { name: c }\n')
    await eventually(() => served(store), 'a,b,c')
  })

  it('renamed into place, again and again', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await eventually(() => served(store), 'a')
    for (const name of ['b', 'c', 'd']) {
      await writeFile(`${file}.new`, state(name))
      await rename(`${file}.new`, file)
      await eventually(() => served(store), name)
    }
  })

  it('deleted and made again: the last good state stays meanwhile', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await eventually(() => served(store), 'a')
    await unlink(file)
    await eventually(() => errors().length, 1)
    expect(errors()[0]).toContain('does not exist')
    expect(served(store)).toBe('a')
    await writeFile(file, state('b'))
    await eventually(() => served(store), 'b')
    expect(lines.at(-1)).toContain('there again')
  })

  it('a ConfigMap swap of ..data', async () => {
    const version = async (name: string, text: string) => {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'state.yaml'), text)
      await symlink(name, join(folder, '..data_tmp'))
      await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    await version('..1', state('a'))
    await symlink(join('..data', 'state.yaml'), file)
    const store = start(noPoll)
    await eventually(() => served(store), 'a')
    await version('..2', state('b'))
    await rm(join(folder, '..1'), { recursive: true })
    await eventually(() => served(store), 'b')
    await version('..3', state('c'))
    await eventually(() => served(store), 'c')
    expect(errors()).toEqual([])
  })
})

it('a change that no watch tells of is found by looking', async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'kpng-file-'))
  try {
    await writeFile(join(elsewhere, 'real.yaml'), state('a'))
    await symlink(join(elsewhere, 'real.yaml'), file)
    const store = start({ pollIntervalMs: 50 })
    await eventually(() => served(store), 'a')
    await writeFile(join(elsewhere, 'real.yaml'), state('b'))
    await eventually(() => served(store), 'b')
  } finally {
    await rm(elsewhere, { recursive: true })
  }
})

describe('revisions', () => {
  it('rewriting the same makes none, a change makes one', async () => {
    await writeFile(file, state('a', 'b'))
    const store = start(noPoll)
    await eventually(() => store.revision, 1)
    const updates = vi.spyOn(store, 'update')
    await writeFile(file, `# the same\n${state('a', 'b')}`)
    await eventually(() => updates.mock.calls.length, 1)
    expect(store.revision).toBe(1)
    await writeFile(file, state('a', 'c'))
    await eventually(() => served(store), 'a,c')
    expect(store.revision).toBe(2)
  })
})

describe('mistakes', () => {
  it('the last good state stays, one line a mistake, and a line when it is good again', async () => {
    await writeFile(file, state('a'))
    const store = start({ pollIntervalMs: 30 })
    await eventually(() => served(store), 'a')
    await writeFile(file, 'services:\n- service: "x\n')
    await eventually(() => errors().length, 1)
    expect(errors()[0]).toContain(`${file}:3:1`)
    // Touched, with the same content: nothing new to say.
    await writeFile(file, 'services:\n- service: "x\n')
    await sleep(200)
    expect(errors()).toHaveLength(1)
    await writeFile(file, 'services:\n- service: "y\n')
    await eventually(() => errors().length, 2)
    expect(served(store)).toBe('a')
    await writeFile(file, state('b'))
    await eventually(() => served(store), 'b')
    expect(lines.at(-1)).toContain('good again')
  })

  it('a file that is being written does not flash an error, nor a part of it', async () => {
    await writeFile(file, state('a'))
    const store = start({ pollIntervalMs: 10, settleMs: 200 })
    await eventually(() => served(store), 'a')
    const seen = new Set<string>()
    store.onChange(() => seen.add(served(store)))
    await writeFile(file, 'services:\n')
    for (const part of [
      '- service:\n',
      '    name: "b',
      '"\n',
      ...Array(20).fill('# still writing\n'),
      '- service: { name: ',
      'c }\n',
    ]) {
      await sleep(20)
      await appendFile(file, part)
    }
    await eventually(() => served(store), 'b,c')
    expect([...seen]).toEqual(['b,c'])
    expect(lines).toEqual([])
  })

  it('a mistake that is gone when it is read again is not told', async () => {
    await writeFile(file, state('a'))
    const store = start({ settleMs: 200, ...noPoll })
    await eventually(() => served(store), 'a')
    await writeFile(file, 'services: "')
    // Later than the first reading (after 200 to 400 ms), before the second (400 ms after it).
    await sleep(500)
    await writeFile(file, state('b'))
    await eventually(() => served(store), 'b')
    expect(lines).toEqual([])
  })

  it('bad items are told once, counted, forgotten when they are mended', async () => {
    const skips = new Skips(log)
    const bad = 'services:\n- service: { name: web, ports: [ { port: 0 } ] }\n'
    await writeFile(file, bad)
    const store = start({ skips, ...noPoll })
    await eventually(() => served(store), 'web')
    await writeFile(file, `${bad}- service: { name: more }\n`)
    await eventually(() => served(store), 'more,web')
    const warnings = lines.filter((line) => line.startsWith('W'))
    expect(warnings).toEqual([expect.stringContaining(`${file}: Service default/web`)])
    expect([skips.total, skips.current]).toEqual([1, 1])
    await writeFile(file, state('web'))
    await eventually(() => served(store), 'web')
    expect([skips.total, skips.current]).toEqual([1, 0])
  })
})

describe('a folder', () => {
  const put = (name: string, text: string) => writeFile(join(folder, name), text)

  it('reads *.yaml, *.yml and *.json, nothing hidden, nothing below', async () => {
    await mkdir(join(folder, 'below.yaml'))
    await mkdir(join(folder, 'sub'))
    await put('sub/x.yaml', state('no'))
    await put('.hidden.yaml', state('no'))
    await put('notes.txt', state('no'))
    await put('a.yaml', state('a'))
    await put('b.yml', state('b'))
    await put('c.json', '{"services":[{"service":{"name":"c"}}]}')
    const store = start({ path: folder })
    await eventually(() => served(store), 'a,b,c')
  })

  it('sees new, changed and deleted files', async () => {
    await put('a.yaml', state('a'))
    const store = start({ path: folder, ...noPoll })
    await eventually(() => served(store), 'a')
    await put('b.yaml', state('b'))
    await eventually(() => served(store), 'a,b')
    await put('b.yaml', state('b2'))
    await eventually(() => served(store), 'a,b2')
    await unlink(join(folder, 'a.yaml'))
    await eventually(() => served(store), 'b2')
  })

  it('one bad file: its last good content and the others stay, the others go on', async () => {
    await put('a.yaml', state('a'))
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await eventually(() => served(store), 'a,b')
    await put('a.yaml', 'services: "')
    await eventually(() => errors().length, 1)
    await put('b.yaml', state('b', 'c'))
    await eventually(() => served(store), 'a,b,c')
    expect(errors()).toHaveLength(1)
  })

  it('one bad file at start: the others are served; all bad: rejected', async () => {
    await put('a.yaml', 'services: "')
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await eventually(() => served(store), 'b')
    expect(errors()).toHaveLength(1)
    stop.abort()
    await running
    await put('b.yaml', 'kind: 7\nspec: 7\n---\n- x')
    stop = new AbortController()
    start({ path: folder })
    await expect(running).rejects.toMatchObject({ code: 'invalid' })
  })

  it('an empty folder is an empty state, with a warning', async () => {
    const store = start({ path: folder })
    await eventually(() => store.synced, true)
    expect(lines).toEqual([expect.stringContaining('no *.yaml')])
  })

  it('reads again only what changed', async () => {
    const then = new Date('2026-01-01T00:00:00Z')
    await put('a.yaml', state('a'))
    await utimes(join(folder, 'a.yaml'), then, then)
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await eventually(() => served(store), 'a,b')
    // Other content that looks the same from outside: only somebody who reads it would notice.
    await put('a.yaml', state('x'))
    await utimes(join(folder, 'a.yaml'), then, then)
    await put('b.yaml', state('b2'))
    await eventually(() => served(store), 'a,b2')
  })

  it('the folder itself is exchanged', async () => {
    const path = join(folder, 'conf')
    await mkdir(path)
    await put('conf/a.yaml', state('a'))
    const store = start({ path, ...noPoll })
    await eventually(() => served(store), 'a')
    await rm(path, { recursive: true })
    await eventually(() => errors().length, 1)
    expect(served(store)).toBe('a')
    await mkdir(path)
    await put('conf/b.yaml', state('b'))
    await eventually(() => served(store), 'b')
    // Until it waits again: now only a watch on the new folder can tell.
    await sleep(150)
    await put('conf/b.yaml', state('c'))
    await eventually(() => served(store), 'c')
  })
})

it('serviceProxyName decides about manifests, not about state files', async () => {
  const labelled = (name: string) =>
    `kind: Service\nmetadata: { name: ${name}, labels: { service.kubernetes.io/service-proxy-name: mine } }\nspec: { clusterIP: None }\n`
  await writeFile(
    file,
    `${labelled('m')}---\n${state('s')}---\nkind: Service\nmetadata: { name: d }\nspec: { clusterIP: 10.0.0.1 }\n`,
  )
  const store = start({ serviceProxyName: 'mine' })
  await eventually(() => served(store), 'm,s')
})
