import { execFileSync } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Call } from './call.js'
import { frame } from './frames.js'
import { bind } from './listening.js'
import { afterTest, connect, startServer, temporaryFolder } from './testing/server.js'

const answerPeer = async (call: Call) => call.write(frame(Buffer.from(call.peer.address)))
const handlers = { '/t/Peer': answerPeer }
const unavailable = (sentence: string | RegExp) =>
  expect.objectContaining({ code: 'unavailable', message: expect.stringMatching(sentence) })

describe('tcp', () => {
  it('reports the real port', async () => {
    const server = await startServer(handlers)
    expect(server.address).toMatch(/^tcp:\/\/127\.0\.0\.1:[1-9]\d+$/)
    expect(await connect(server.target).unary('/t/Peer', Buffer.alloc(0))).toBeDefined()
  })

  it('listens on every address when there is no host', async () => {
    const server = await startServer(handlers, { address: 'tcp://:0' })
    expect(server.address).toMatch(/^tcp:\/\/(\[::\]|0\.0\.0\.0):[1-9]\d+$/)
    expect(await connect(`127.0.0.1:${server.port}`).unary('/t/Peer', Buffer.alloc(0))).toBeDefined()
  })

  const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))
  it.skipIf(!hasIPv6)('listens on IPv6', async () => {
    const server = await startServer(handlers, { address: 'tcp://[::1]:0' })
    expect(server.address).toMatch(/^tcp:\/\/\[::1\]:[1-9]\d+$/)
    const peer = await connect(server.target).unary('/t/Peer', Buffer.alloc(0))
    expect(peer?.toString()).toMatch(/^\[::1\]:\d+$/)
  })

  it('says what to do when the address is taken, or not ours', async () => {
    const first = await startServer(handlers)
    await expect(startServer(handlers, { address: first.address })).rejects.toEqual(
      unavailable(/^Cannot listen on tcp:\/\/127\.0\.0\.1:\d+: the address is already in use\. Stop .* --listen\.$/),
    )
    await expect(startServer(handlers, { address: 'tcp://192.0.2.1:0' })).rejects.toEqual(
      unavailable('this machine does not have that address'),
    )
  })

  it('says what to do when the port is not for this user', async () => {
    // Tests may run as root, who may open every port: the kernel's answer is played.
    class Refusing extends Server {
      override listen(): this {
        process.nextTick(() => this.emit('error', Object.assign(new Error('no'), { code: 'EACCES' })))
        return this
      }
    }
    await expect(bind(new Refusing(), { kind: 'tcp', host: '127.0.0.1', port: 80 })).rejects.toEqual(
      unavailable('may not open that port. Choose a port above 1023'),
    )
    const folder = temporaryFolder()
    await expect(bind(new Refusing(), { kind: 'unix', path: join(folder, 'kpng.sock') })).rejects.toEqual(
      unavailable(`may not make a file in ${folder}`),
    )
  })
})

describe('unix socket', () => {
  it('serves, with mode 0660, and takes its file away', async () => {
    const path = join(temporaryFolder(), 'kpng.sock')
    const before = process.umask(0o022)
    afterTest(() => process.umask(before))
    const server = await startServer(handlers, { address: `unix://${path}` })
    expect(process.umask()).toBe(0o022)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    const peer = await connect(`unix:${path}`).unary('/t/Peer', Buffer.alloc(0))
    expect(peer?.toString()).toBe(`unix://${path}`)
    expect(server.address).toBe(`unix://${path}`)
    await server.close(100)
    expect(existsSync(path)).toBe(false)
  })

  it('has its mode from the first moment', async () => {
    const path = join(temporaryFolder(), 'kpng.sock')
    const modes: number[] = []
    const server = createServer()
    const { listen } = server
    server.listen = ((...args: Parameters<typeof listen>) => {
      const result = listen.apply(server, args)
      modes.push(statSync(path).mode & 0o777)
      return result
    }) as typeof listen
    afterTest(() => server.close())
    await bind(server, { kind: 'unix', path })
    expect(modes).toEqual([0o660])
  })

  it('takes the place of a server that was killed', async () => {
    const path = join(temporaryFolder(), 'kpng.sock')
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    expect(() => execFileSync(process.execPath, ['-e', script], { stdio: 'ignore' })).toThrow()
    expect(existsSync(path)).toBe(true)
    await startServer(handlers, { address: `unix://${path}` })
    expect(await connect(`unix:${path}`).unary('/t/Peer', Buffer.alloc(0))).toBeDefined()
  })

  it('does not take the place of a server that runs', async () => {
    const path = join(temporaryFolder(), 'kpng.sock')
    await startServer(handlers, { address: `unix://${path}` })
    await expect(startServer(handlers, { address: `unix://${path}` })).rejects.toEqual(
      unavailable('already in use by a running server'),
    )
    expect(await connect(`unix:${path}`).unary('/t/Peer', Buffer.alloc(0))).toBeDefined()
  })

  it('removes no file that is not a socket', async () => {
    const path = join(temporaryFolder(), 'notes.txt')
    writeFileSync(path, 'mine')
    await expect(startServer(handlers, { address: `unix://${path}` })).rejects.toEqual(unavailable('is no socket'))
    expect(existsSync(path)).toBe(true)
  })

  it('names the folder that is missing', async () => {
    const folder = join(temporaryFolder(), 'none')
    await expect(startServer(handlers, { address: `unix://${folder}/kpng.sock` })).rejects.toEqual(
      unavailable(`the folder ${folder} does not exist. Make it first`),
    )
  })
})
