import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { lockName } from './name-lock.js'

describe.skipIf(process.platform !== 'linux')('lockName', () => {
  const name = `test-${process.pid}`

  it('gives a name to one holder at a time, and says who has it', async () => {
    const lock = await lockName(name, 'kpng (pid 12)')
    await expect(lockName(name, 'another')).rejects.toThrow(
      `"${name}" is in use on this node by kpng (pid 12). Stop it first, or give this one another name.`,
    )
    await lock.release()
    await (await lockName(name, 'another')).release()
  })

  it('gives different names to different holders', async () => {
    const locks = [await lockName(`${name}-a`, 'a'), await lockName(`${name}-b`, 'b')]
    for (const lock of locks) await lock.release()
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

  it('is free again when its holder is killed', async () => {
    const script = `require('net').createServer().listen('\\0kpng/${name}'.padEnd(108, '\\0'), () => console.log('ready'))`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    await expect(lockName(name, 'next')).rejects.toThrow('in use')
    child.kill('SIGKILL')
    await once(child, 'exit')
    await (await lockName(name, 'next')).release()
  })
})
