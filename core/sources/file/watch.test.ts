import { appendFile, chmod, mkdir, mkdtemp, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Store } from '../../store/index.js'
import { poll, recordingLog } from '../../testing/until.js'
import { withoutRoot } from '../../testing/without-root.js'
import { Skips } from '../skips.js'
import { type WatchFileOptions, watchFile } from './watch.js'

let folder: string
let file: string
let recorded: ReturnType<typeof recordingLog>
let stop: AbortController
let running: Promise<void> | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-file-'))
  file = join(folder, 'state.yaml')
  recorded = recordingLog()
  stop = new AbortController()
  running = undefined
})

afterEach(async () => {
  stop.abort()
  await running?.catch(() => {})
  await rm(folder, { recursive: true, force: true })
})

/** Without details. */
const lines = () => recorded.lines.filter((line) => /^[EWI]/.test(line))
const errors = () => lines().filter((line) => line.startsWith('E'))

const state = (...names: string[]) => `services:\n${names.map((name) => `- service: { name: ${name} }\n`).join('')}`

function start(options: Partial<WatchFileOptions> = {}, pause?: (ms: number) => Promise<unknown>): Store {
  const store = new Store()
  const { log } = recorded
  running = watchFile({ path: file, store, log, signal: stop.signal, settleMs: 20, ...options }, pause)
  return store
}

const served = (store: Store) =>
  store
    .entries()
    .filter(({ service }) => service)
    .map(({ name }) => name)
    .sort()
    .join()

/** No poll within the test: only what the file system reports counts. */
const noPoll = { pollIntervalMs: 60_000 }

describe('at start', () => {
  it('serves the file and is synced', async () => {
    await writeFile(file, state('a', 'b'))
    const store = start()
    await expect.poll(() => served(store), poll).toBe('a,b')
    expect(store.synced).toBe(true)
  })

  it('resolves when it is stopped', async () => {
    await writeFile(file, state('a'))
    const store = start()
    await expect.poll(() => store.synced, poll).toBe(true)
    stop.abort()
    await expect(running).resolves.toBeUndefined()
  })

  it.each([
    ['a path that does not exist', undefined, 'unavailable', 'does not exist'],
    ['a mistake', 'services: none', 'invalid', 'state.yaml:1:11: services is "none"; a list was expected.'],
    ['no YAML', 'a: "', 'invalid', 'state.yaml:1:4: This is not valid YAML'],
  ])('rejects %s and logs nothing itself', async (_, text, code, message) => {
    if (text !== undefined) await writeFile(file, text)
    const store = start()
    await expect(running).rejects.toMatchObject({ name: 'KpngError', code, message: expect.stringContaining(message) })
    expect(store.synced).toBe(false)
    expect(lines()).toEqual([])
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
    await expect.poll(() => store.synced, poll).toBe(true)
    expect(served(store)).toBe('')
  })
})

describe('changes are seen through the folder, without a poll', () => {
  it('written in place', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await expect.poll(() => served(store), poll).toBe('a')
    await writeFile(file, state('a', 'b'))
    await expect.poll(() => served(store), poll).toBe('a,b')
    await appendFile(file, '- service: { name: c }\n')
    await expect.poll(() => served(store), poll).toBe('a,b,c')
  })

  it('renamed into place, again and again', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await expect.poll(() => served(store), poll).toBe('a')
    for (const name of ['b', 'c', 'd']) {
      await writeFile(`${file}.new`, state(name))
      await rename(`${file}.new`, file)
      await expect.poll(() => served(store), poll).toBe(name)
    }
  })

  it('deleted and made again: the last good state stays meanwhile', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll)
    await expect.poll(() => served(store), poll).toBe('a')
    await unlink(file)
    await expect.poll(() => errors().length, poll).toBe(1)
    expect(errors()[0]).toContain('does not exist')
    expect(served(store)).toBe('a')
    await writeFile(file, state('b'))
    await expect.poll(() => served(store), poll).toBe('b')
    expect(lines().at(-1)).toContain('The files are back')
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
    await expect.poll(() => served(store), poll).toBe('a')
    await version('..2', state('b'))
    await rm(join(folder, '..1'), { recursive: true })
    await expect.poll(() => served(store), poll).toBe('b')
    await version('..3', state('c'))
    await expect.poll(() => served(store), poll).toBe('c')
    expect(errors()).toEqual([])
  })
})

it('a change that the file system does not report is found by polling', async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'kpng-file-'))
  try {
    await writeFile(join(elsewhere, 'real.yaml'), state('a'))
    await symlink(join(elsewhere, 'real.yaml'), file)
    const store = start({ pollIntervalMs: 50 })
    await expect.poll(() => served(store), poll).toBe('a')
    await writeFile(join(elsewhere, 'real.yaml'), state('b'))
    await expect.poll(() => served(store), poll).toBe('b')
  } finally {
    await rm(elsewhere, { recursive: true })
  }
})

describe('revisions', () => {
  it('rewriting the same makes none, a change makes one', async () => {
    await writeFile(file, state('a', 'b'))
    const store = start(noPoll)
    await expect.poll(() => store.revision, poll).toBe(1)
    const update = vi.spyOn(store, 'update')
    await writeFile(file, `# the same\n${state('a', 'b')}`)
    await expect.poll(() => update.mock.calls.length, poll).toBe(1)
    expect(store.revision).toBe(1)
    await writeFile(file, state('a', 'c'))
    await expect.poll(() => served(store), poll).toBe('a,c')
    expect(store.revision).toBe(2)
  })
})

describe('mistakes', () => {
  it('the last good state stays, one line per mistake, and a line when the file is good again', async () => {
    const other = join(folder, 'z.yaml')
    await writeFile(file, state('a'))
    await writeFile(other, state('y'))
    const store = start({ path: folder, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('a,y')
    await writeFile(file, 'services:\n- service: "x\n')
    await expect.poll(() => errors().length, poll).toBe(1)
    expect(errors()[0]).toContain(`${file}:2:12`)
    // The same content again is not a new mistake. Once the other file is served, this one has been read.
    await writeFile(file, 'services:\n- service: "x\n')
    await writeFile(other, state('z'))
    await expect.poll(() => served(store), poll).toBe('a,z')
    expect(errors()).toHaveLength(1)
    await writeFile(file, 'services:\n- service: "y\n')
    await expect.poll(() => errors().length, poll).toBe(2)
    expect(served(store)).toBe('a,z')
    await writeFile(file, state('b'))
    await expect.poll(() => served(store), poll).toBe('b,z')
    expect(lines().at(-1)).toContain('good again')
  })

  it('an unknown field: the last good state stays, and at start it is rejected', async () => {
    await writeFile(file, `nodes: []\n${state('a')}`)
    const store = start(noPoll)
    await expect.poll(() => served(store), poll).toBe('a')
    await writeFile(file, `nodes: []\n${state('a', 'b').replace('services', 'servces')}`)
    await expect.poll(() => errors().length, poll).toBe(1)
    expect(errors()[0]).toContain(`${file}:2:1: servces is not a field of a state file. Did you mean services?`)
    expect(served(store)).toBe('a')
    stop.abort()
    await running
    stop = new AbortController()
    start()
    await expect(running).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('servces') })
  })

  it('a file that is being written gives neither an error nor a part of it', async () => {
    await writeFile(file, state('a'))
    const parts = ['services:\n', '- service:\n', '    name: "b', '"\n', '# still\n', '- service: { name: ', 'c }\n']
    // Each time that the source waits for the file to settle, the writer adds a part.
    const store = start(noPoll, async () => {
      const part = parts.shift()
      if (part !== undefined) await appendFile(file, part)
    })
    await expect.poll(() => served(store), poll).toBe('a')
    const seen = new Set<string>()
    store.onChange(() => seen.add(served(store)))
    await writeFile(file, '')
    await expect.poll(() => served(store), poll).toBe('b,c')
    expect([...seen]).toEqual(['b,c'])
    expect(lines()).toEqual([])
  })

  it('a mistake that is gone when the file is read again is not logged', async () => {
    await writeFile(file, state('a'))
    const store = start(noPoll, async (ms) => {
      // The wait between the two readings is twice as long as the one for the file to settle.
      if (ms === 40) await writeFile(file, state('b'))
    })
    await expect.poll(() => served(store), poll).toBe('a')
    await writeFile(file, 'services: "')
    await expect.poll(() => served(store), poll).toBe('b')
    expect(lines()).toEqual([])
  })

  it('a file that cannot be read is read again, although neither its content nor its time changed', async () => {
    await chmod(folder, 0o777)
    await withoutRoot(async () => {
      await writeFile(file, state('a'))
      const store = start({ pollIntervalMs: 20 })
      await expect.poll(() => served(store), poll).toBe('a')
      await writeFile(`${file}.new`, state('b'))
      await chmod(`${file}.new`, 0)
      await rename(`${file}.new`, file)
      await expect.poll(() => errors().length, poll).toBe(1)
      expect(errors()[0]).toContain('Check its permissions')
      expect(served(store)).toBe('a')
      await chmod(file, 0o644)
      await expect.poll(() => served(store), poll).toBe('b')
      expect(errors()).toHaveLength(1)
    })
  })

  it('bad items are logged once, counted, and forgotten when they are corrected', async () => {
    const skips = new Skips(recorded.log)
    const bad = 'services:\n- service: { name: web, ports: [ { port: 0 } ] }\n'
    await writeFile(file, bad)
    const store = start({ skips, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('web')
    await writeFile(file, `${bad}- service: { name: more }\n`)
    await expect.poll(() => served(store), poll).toBe('more,web')
    const warnings = lines().filter((line) => line.startsWith('W'))
    expect(warnings).toEqual([expect.stringContaining(`${file}: Service default/web`)])
    expect([skips.total, skips.current]).toEqual([1, 1])
    await writeFile(file, state('web'))
    await expect.poll(() => served(store), poll).toBe('web')
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
    await expect.poll(() => served(store), poll).toBe('a,b,c')
  })

  it('sees new, changed and deleted files', async () => {
    await put('a.yaml', state('a'))
    const store = start({ path: folder, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('a')
    await put('b.yaml', state('b'))
    await expect.poll(() => served(store), poll).toBe('a,b')
    await put('b.yaml', state('b2'))
    await expect.poll(() => served(store), poll).toBe('a,b2')
    await unlink(join(folder, 'a.yaml'))
    await expect.poll(() => served(store), poll).toBe('b2')
  })

  it('one bad file: its last good content and the others stay, the others go on', async () => {
    await put('a.yaml', state('a'))
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('a,b')
    await put('a.yaml', 'services: "')
    await expect.poll(() => errors().length, poll).toBe(1)
    await put('b.yaml', state('b', 'c'))
    await expect.poll(() => served(store), poll).toBe('a,b,c')
    expect(errors()).toHaveLength(1)
  })

  it('one bad file at start: the others are served; all bad: rejected', async () => {
    await put('a.yaml', 'services: "')
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('b')
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
    await expect.poll(() => store.synced, poll).toBe(true)
    expect(lines()).toEqual([expect.stringContaining('no *.yaml')])
  })

  it('reads again only what changed', async () => {
    const then = new Date('2026-01-01T00:00:00Z')
    await put('a.yaml', state('a'))
    await utimes(join(folder, 'a.yaml'), then, then)
    await put('b.yaml', state('b'))
    const store = start({ path: folder, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('a,b')
    // Other content that looks the same from outside: only somebody who reads it would notice.
    await put('a.yaml', state('x'))
    await utimes(join(folder, 'a.yaml'), then, then)
    await put('b.yaml', state('b2'))
    await expect.poll(() => served(store), poll).toBe('a,b2')
  })

  it('the folder itself is replaced', async () => {
    const path = join(folder, 'conf')
    await mkdir(path)
    await put('conf/a.yaml', state('a'))
    const store = start({ path, ...noPoll })
    await expect.poll(() => served(store), poll).toBe('a')
    await rm(path, { recursive: true })
    await expect.poll(() => errors().length, poll).toBe(1)
    expect(served(store)).toBe('a')
    await mkdir(path)
    await put('conf/b.yaml', state('b'))
    await expect.poll(() => served(store), poll).toBe('b')
    // From now on only a watch on the new folder reports changes.
    await put('conf/b.yaml', state('c'))
    await expect.poll(() => served(store), poll).toBe('c')
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
  await expect.poll(() => served(store), poll).toBe('m,s')
})
