import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { silentLog } from '@kpng/api'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { programPath } from '../../linux/testing/bundle.js'
import { Descriptors } from './descriptors.js'
import type { ProxySettings } from './testing/agent.js'
import { outcome, tcpServer } from './testing/peers.js'
import { bundleAgent, type Machine, startAgent } from './testing/remote.js'
import { moverOptions, movers } from './testing/splice-script.js'

const tooMany = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' })

describe('waiting for descriptors', () => {
  it('resumes one waiter for each thing that is closed, in order, then is free again', () => {
    // Of 100, sixteen are for those who wait, and sixteen are kept free.
    const descriptors = new Descriptors(silentLog, 100, 64)
    const close = [1, 2, 3, 4].map(() => descriptors.opened())
    const resumed: number[] = []
    expect(descriptors.usedUp).toBe(true)
    for (const n of [1, 2])
      descriptors.wait(
        () => resumed.push(n),
        () => {},
      )
    close[0]?.()
    expect(resumed).toEqual([1])
    close[1]?.()
    expect(resumed).toEqual([1, 2])
    close[2]?.()
    expect(descriptors.usedUp).toBe(false)
    descriptors.close()
  })

  it.each([
    [100, 84],
    [256, 224],
    [1024, 960],
    [1_048_576, 1_048_512],
    [2 ** 31 - 1, 2 ** 31 - 65],
  ])('of %d it leaves some for programming the machine: clients may have %d', (limit, most) => {
    const descriptors = new Descriptors(silentLog, limit, most - 1)
    expect(descriptors.full).toBe(false)
    const close = descriptors.opened()
    expect(descriptors.full).toBe(true)
    close()
    expect(descriptors.full).toBe(false)
    descriptors.close()
  })

  it.each([3_600_000, -3_600_000])('a clock that jumps by %d ms does not change how long clients wait', (jumpMs) => {
    vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
    try {
      const descriptors = new Descriptors(silentLog, 100, 84)
      descriptors.report(tooMany)
      let givenUp = 0
      descriptors.wait(
        () => {},
        () => givenUp++,
      )
      vi.setSystemTime(Date.now() + jumpMs)
      vi.advanceTimersByTime(29_000)
      expect(givenUp).toBe(0)
      vi.advanceTimersByTime(2000)
      expect(givenUp).toBe(1)
      descriptors.close()
    } finally {
      vi.useRealTimers()
    }
  })

  it('recovers from a failure where no limit is known', () => {
    const descriptors = new Descriptors(silentLog, 2 ** 31 - 1, 0)
    const close = descriptors.opened()
    descriptors.report(tooMany)
    close()
    expect(descriptors.usedUp).toBe(false)
    descriptors.close()
  })

  it('takes a failure to open something as its word, and tells waiters to give up when it closes', () => {
    const descriptors = new Descriptors(silentLog, 1000, 0)
    let gaveUp = 0
    expect(descriptors.usedUp).toBe(false)
    descriptors.report(tooMany)
    expect(descriptors.usedUp).toBe(true)
    descriptors.wait(
      () => {},
      () => gaveUp++,
    )
    descriptors.close()
    expect(gaveUp).toBe(1)
  })
})

const hasPrlimit = () => {
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    console.warn('SKIPPED: a proxy at its limit of open files: prlimit is not installed')
    return false
  }
}

describe.runIf(hasPrlimit()).each(movers)('a proxy at its limit of open files, %s', (mover) => {
  const agent = programPath('limited-agent')
  let proxy: Machine | undefined
  let forwarding: Pick<ProxySettings, 'mover' | 'spliceScript'>
  beforeAll(async () => {
    const { spliceScript: script } = await moverOptions(mover)
    forwarding = { mover, ...(script ? { spliceScript: script.href } : {}) }
    await bundleAgent(agent)
  })
  afterAll(async () => {
    await proxy?.kill()
    rmSync(agent, { force: true })
  })

  it('serves those it accepted as others end, does not crash, and is as before afterwards', async () => {
    proxy = await startAgent(['prlimit', '--nofile=160'], agent)
    const pod = await tcpServer('127.20.0.9', 'pod', {
      serve: (socket) => void socket.on('data', () => setTimeout(() => socket.end('served'), 200)),
    })
    await proxy.startProxy({ capture: 'none', allowLoopback: true, ...forwarding })
    await proxy.setService('web', { ips: { clusterIps: { v4: ['127.40.0.9'] } } }, [['127.20.0.9', pod.port]])
    const one = () =>
      new Promise<string>((resolve) => {
        const socket = connect({ host: '127.40.0.9', port: 8080 }, () => socket.write('x'))
        socket.on('data', (text) => resolve(text.toString()))
        socket.on('error', () => resolve('error'))
        socket.on('close', () => resolve('closed'))
      })
    const atOnce = async (clients: number) =>
      (await Promise.all(Array.from({ length: clients }, one))).filter((result) => result === 'served').length
    // Fifty connections need a hundred descriptors, Node itself has some thirty and twenty are kept free: nobody is turned away all the same.
    expect(await atOnce(50)).toBe(50)
    const served = await atOnce(200)
    expect(served).toBeGreaterThan(40)
    for (let i = 0; i < 5; i++) expect(await one()).toBe('served')
    await pause(50)
    const [, counters] = (await proxy.counters())[0] ?? []
    expect(counters).toMatchObject({ connections: 50 + served + 5, active: 0 })
    await proxy.stopProxy()
    expect(await outcome('127.40.0.9', 8080)).toBe('ECONNREFUSED')
    await pod.close()
    console.info(`   200 clients at once with 160 open files: ${served} served, the others turned away`)
  })

  it('programs services while clients hold all the connections that they can get', async () => {
    await proxy?.kill()
    proxy = await startAgent(['prlimit', '--nofile=128'], agent)
    const pod = await tcpServer('127.20.0.9', 'pod', { serve: (socket) => void socket.resume() })
    await proxy.startProxy({ capture: 'none', allowLoopback: true, ...forwarding })
    const set = (name: string, ip: string) =>
      proxy?.setService(name, { ips: { clusterIps: { v4: [ip] } } }, [['127.20.0.9', pod.port]])
    await set('web', '127.40.0.9')
    const clients = Array.from({ length: 200 }, () => connect({ host: '127.40.0.9', port: 8080 }).on('error', () => {}))
    await pause(300)
    for (const last of [10, 11, 12]) await set(`later-${last}`, `127.40.0.${last}`)
    expect(await proxy.failures()).toEqual([])
    expect(await proxy.run('echo', ['a program can be started'])).toBe('a program can be started\n')
    for (const client of clients) client.destroy()
    await pod.close()
  })

  it('serves as many services as it can, if there are more than it may open files', async () => {
    await proxy?.kill()
    proxy = await startAgent(['prlimit', '--nofile=128'], agent)
    const pod = await tcpServer('127.20.0.9', 'pod')
    await proxy.startProxy({ capture: 'none', allowLoopback: true, ...forwarding })
    for (let last = 1; last <= 130; last++) {
      await proxy.setService(`s${last}`, { ips: { clusterIps: { v4: [`127.41.0.${last}`] } } }, [
        ['127.20.0.9', pod.port],
      ])
    }
    expect(await outcome('127.41.0.1', 8080)).toBe('pod')
    expect(await proxy.run('echo', ['a program can be started'])).toBe('a program can be started\n')
    const failures = await proxy.failures()
    expect(failures.length).toBeGreaterThanOrEqual(130 - 64)
    for (const [, reason] of failures) expect(reason).toMatch(/^Too many files are open to serve another port/)
    // Once others go there is room again.
    for (let last = 1; last <= 60; last++) await proxy.setService(`s${last}`, null)
    expect((await proxy.failures()).length).toBeLessThan(failures.length)
    await pod.close()
  })
})
