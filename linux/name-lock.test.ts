import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockName as lockNameIn } from './name-lock.js'

const require = createRequire(import.meta.url)

describe.skipIf(process.platform !== 'linux')('lockName', () => {
  const name = `test-${process.pid}`
  const abstract = `\\0kpng/${name}`
  let folder: string
  let made: string
  let warnings: unknown[]
  const children: ChildProcess[] = []

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kpng-lock-'))
    made = folder
    chmodSync(folder, 0o755)
    warnings = []
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    rmSync(made, { recursive: true, force: true })
  })

  const log = { ...silentLog, warn: (message: string, fields?: object) => void warnings.push({ message, ...fields }) }
  const lockName = (asked: string, holder: string) => lockNameIn(asked, holder, { folder, log })

  /** Runs a script in a process of its own, until it has printed something. */
  const running = async (script: string, uid?: number) => {
    const child = spawn(process.execPath, ['-e', script], {
      ...{ stdio: ['ignore', 'pipe', 'inherit'], cwd: '/' },
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    children.push(child)
    await once(child.stdout, 'data')
    const end = async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    return { end }
  }
  const listening = (onSocket = '') =>
    `require('net').createServer((socket) => {${onSocket}}).listen('${abstract}'.padEnd(108, '\\0'), () => console.log('ready'))`

  it('gives a name to one holder at a time, says who has it, and leaves no file', async () => {
    const lock = await lockName(name, 'kpng (pid 12)')
    expect(statSync(join(folder, readdirSync(folder)[0] as string)).mode & 0o777).toBe(0o600)
    await expect(lockName(name, 'another')).rejects.toThrow(
      `"${name}" is in use on this node by kpng (pid 12). Stop it first, or give this one another name.`,
    )
    await lock.release()
    expect(readdirSync(folder)).toEqual([])
    await (await lockName(name, 'another')).release()
    expect(warnings).toEqual([])
  })

  it('gives different names to different holders', async () => {
    const locks = [await lockName(`${name}-a`, 'a'), await lockName(`${name}-b`, 'b')]
    for (const lock of locks) await lock.release()
  })

  it('believes the file alone: nobody listens on the socket', async () => {
    const script = `
      const koffi = require('${require.resolve('koffi')}')
      const fs = require('fs')
      const fd = fs.openSync(process.argv[1], 'w')
      if (koffi.load(null).func('int flock(int, int)')(fd, 6) !== 0) throw new Error('not locked')
      fs.writeSync(fd, 'kpng \\u001b[31mred\\u202e and a long ${'text '.repeat(100)}')
      console.log('ready'), setInterval(() => {}, 1000)`
    const lock = await lockName(name, 'this one')
    const [file] = readdirSync(folder)
    await lock.release()
    const child = spawn(process.execPath, ['-e', script, join(folder, file as string)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    const error = (await lockName(name, 'next').catch((reason) => reason)) as Error
    expect(error.message).toContain('by kpng ?[31mred? and a long text')
    expect(error.message.length).toBeLessThan(400)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await (await lockName(name, 'next')).release()
  })

  it('recognises an older kpng, which has only the socket, and is free again when that is killed', async () => {
    const older = await running(listening(`socket.end('kpng (pid 7)')`))
    await expect(lockName(name, 'next')).rejects.toThrow('is in use on this node by kpng (pid 7).')
    expect(readdirSync(folder)).toEqual([])
    await older.end()
    await (await lockName(name, 'next')).release()
  })

  it('reads at most 200 bytes of what a holder says, however much it says', async () => {
    const flood = `const more = () => { while (socket.write('x'.repeat(65536))); socket.once('drain', more) }; socket.on('error', () => {}); more()`
    const older = await running(listening(flood))
    const error = (await lockName(name, 'next').catch((reason) => reason)) as Error
    expect(error.message).toContain(`by ${'x'.repeat(200)}.`)
    await older.end()
  })

  it.skipIf(process.getuid?.() !== 0)('is not kept from its name by another user', async () => {
    const other = await running(listening(`socket.end('\\u001b[2Jhaha')`), 65534)
    const lock = await lockName(name, 'kpng (pid 12)')
    expect(warnings).toMatchObject([
      { message: expect.stringContaining('another user'), user: 65534, said: '?[2Jhaha' },
    ])
    // Still one at a time.
    await expect(lockName(name, 'second')).rejects.toThrow('by kpng (pid 12)')
    await lock.release()
    await other.end()
    // One that does not even listen.
    const silent = await running(
      `const koffi = require('${require.resolve('koffi')}'); const lib = koffi.load(null);
       const address = Buffer.alloc(110); address.writeUInt16LE(1); address.write('${abstract}', 2);
       const fd = lib.func('int socket(int, int, int)')(1, 1, 0);
       if (lib.func('int bind(int, const void *, int)')(fd, address, 110) !== 0) throw new Error('not bound');
       console.log('ready'), setInterval(() => {}, 1000)`,
      65534,
    )
    await (await lockName(name, 'kpng (pid 12)')).release()
    await silent.end()
  })

  it.skipIf(process.getuid?.() !== 0)('believes no folder and no file of others', async () => {
    const refused = async (why: string) => {
      const error = (await lockName(name, 'one').catch((reason) => reason)) as Error
      expect(error.message).toContain(why)
      expect(error.message).toContain(`in a container, mount the node's own ${folder} there`)
    }
    chmodSync(folder, 0o777)
    await refused(`others may write ${folder}`)
    chmodSync(folder, 0o755)
    const lock = await lockName(name, 'one')
    const file = join(folder, readdirSync(folder)[0] as string)
    await lock.release()
    writeFileSync(file, 'x')
    chownSync(file, 65534, 65534)
    await refused('it belongs to another user (65534)')
    rmSync(file)
    chownSync(folder, 65534, 65534)
    await refused(`${folder} belongs to another user (65534)`)
    chownSync(folder, 0, 0)
    writeFileSync(join(folder, 'a-file'), '')
    folder = join(folder, 'a-file')
    await refused('EEXIST')
  })

  it('keeps no connection of a process that asks who has it', async () => {
    const lock = await lockName(name, 'holder')
    const asking = connect({ path: `\0kpng/${name}`.padEnd(108, '\0'), allowHalfOpen: true })
    const failed = once(asking, 'error')
    asking.resume()
    await once(asking, 'end')
    // The holder's end is gone, though this one is still open.
    const knock = setInterval(() => asking.write('still here'), 5)
    expect((await failed)[0]).toMatchObject({ code: 'EPIPE' })
    clearInterval(knock)
    await lock.release()
  })
})
