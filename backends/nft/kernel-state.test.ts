import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import type { Backend, SyncStep } from '@kpng/client'
import { loadLibc } from '@kpng/linux'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { families } from './address.js'
import { nftBackend } from './backend.js'
import { DesiredState } from './desired-state.js'
import type { Elements } from './element.js'
import { DriftWatch } from './netlink/drift-watch.js'
import { NetlinkWriter } from './netlink/writer.js'
import { NftCommand } from './nft-command.js'
import { NftWriter } from './nft-writer.js'
import { nodeContext } from './node-context.js'
import { type NftOptions, settingsOf } from './options.js'
import { elementLines } from './render.js'
import { labView, options } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { change, endpoint, fullSync, ips, item, type TestView, udp, view as viewOf } from './testing/objects.js'
import type { Writer } from './writer.js'

// What is in the kernel after a start, a restart, a change by others, an upgrade. No packets: those are in kernel-flow.test.ts.

function nft(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('nft', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`nft ${args.join(' ')}: ${stderr}`)
  return stdout
}

const reasons: string[] = []
const runner = { requestFullSync: (reason: string) => reasons.push(reason) }
const running: Backend[] = []

async function start(given: NftOptions): Promise<ReturnType<typeof nftBackend>> {
  const backend = nftBackend({ ...options, log: silentLog, driftCheckIntervalMs: 20, ...given })
  running.push(backend)
  await backend.setup(runner)
  return backend
}

async function readAll(writer: Writer): Promise<Elements> {
  return new Map([...(await writer.readAll('ip')), ...(await writer.readAll('ip6'))])
}

const wanted = (view: TestView, given: NftOptions = options): Elements => {
  const settings = settingsOf(given)
  return new DesiredState(silentLog).rebuild(
    view,
    nodeContext(view.node, { families, hostAddresses: () => [] }, settings),
  )
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function driftNoticed(): Promise<void> {
  for (let tries = 0; reasons.length === 0 && tries < 100; tries++) await pause(20)
  expect(reasons.length).toBeGreaterThan(0)
  reasons.length = 0
}

describe.skipIf(whyNoKernel() !== undefined)('the tables in the kernel', () => {
  let netlink: NetlinkWriter
  let command: NftWriter
  let watch: DriftWatch

  beforeAll(async () => {
    await enterNewNamespace()
    const libc = await loadLibc()
    netlink = new NetlinkWriter(libc)
    command = new NftWriter(new NftCommand('nft'))
    watch = new DriftWatch(libc, [])
  })
  afterEach(async () => {
    watch.pause()
    for (const backend of running.splice(0)) await backend.cleanup()
    spawnSync('nft', ['delete', 'table', 'ip', 'foreign'])
    reasons.length = 0
  })

  describe.each(['netlink', 'nft'] as const)('writer %s', (writer) => {
    // nft 1.0.6 cannot make IPv6 affinity; the view without it shows everything else alike.
    const testView = () => {
      const view = labView()
      if (writer === 'nft') view.services.delete('default/sticky')
      return view
    }

    test('holds after the first sync exactly what the view asks for, whoever reads it', async () => {
      const view = testView()
      await (await start({ writer })).sync(view, fullSync)
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
      expect(elementLines(await readAll(command))).toEqual(elementLines(wanted(view)))
    })

    test('a change is written', async () => {
      const view = testView()
      const backend = await start({ writer })
      await backend.sync(view, fullSync)
      const now = { name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.244.9.9')] }
      await backend.sync(view, change(view, 'web', now))
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
      await backend.sync(view, change(view, 'web', undefined))
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
    })

    test('each transaction is a step of a traced sync, and so is the search for stale flows', async () => {
      const dns = { name: 'dns', ips: { clusterIps: ips('10.96.0.10') }, ports: [udp(53)] }
      const view = viewOf([{ ...dns, endpoints: [endpoint('10.244.1.1')] }])
      const backend = await start({ writer, ipv6: false })
      const looked: unknown[] = []
      backend.onStaleFlows = (family, durationMs, deleted) => looked.push([family, durationMs >= 0, deleted])
      const traced = async (changes: typeof fullSync) => {
        const steps: SyncStep[] = []
        const from = Date.now()
        await backend.sync(view, changes, steps)
        for (const { startedAtMs, endedAtMs } of steps) {
          expect(startedAtMs).toBeGreaterThan(from - 1000)
          expect(endedAtMs).toBeGreaterThanOrEqual(startedAtMs)
          expect(endedAtMs).toBeLessThan(Date.now() + 1000)
        }
        return steps.map(({ name, attributes }) => [name, ...Object.values(attributes)])
      }
      // Nothing is deleted; where looking takes longer than a sync waits for it, that is said instead.
      const conntrack = ['conntrack', expect.toSatisfy((told: unknown) => told === 0 || told === true)]
      const elements = elementLines(wanted(view)).filter((line) => line.startsWith('ip ')).length
      expect(await traced(fullSync)).toEqual([['transaction', 0, 'nft'], ['transaction', elements, writer], conntrack])
      const moved = change(view, 'dns', { ...dns, endpoints: [endpoint('10.244.1.2')] })
      expect(await traced(moved)).toEqual([['transaction', 2, writer], conntrack])
      expect(await traced(change(view, 'none', undefined))).toEqual([])
      await expect
        .poll(() => looked)
        .toEqual([
          ['ip', true, 0],
          ['ip', true, 0],
        ])
    })

    test('a restart adopts what is there and writes nothing (81)', async () => {
      const view = testView()
      await (await start({ writer })).sync(view, fullSync)
      const second = await start({ writer })
      watch.listen()
      await second.sync(view, fullSync)
      expect(watch.check()).toBeUndefined()
    })

    test('a restart writes only what changed meanwhile (81)', async () => {
      const view = testView()
      await (await start({ writer })).sync(view, fullSync)
      view.services.set(
        'default/new',
        item({ name: 'new', ips: { clusterIps: ips('10.96.5.5') }, endpoints: [endpoint('10.244.1.10')] }),
      )
      view.services.delete('default/solo')
      await (await start({ writer })).sync(view, fullSync)
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
    })

    test('another version of the rules is replaced, foreign tables are not touched (79, 81)', async () => {
      nft('add table ip foreign')
      const view = testView()
      await (await start({ writer, masqueradeBit: 20 })).sync(view, fullSync)
      expect(nft('list', 'chain', 'ip', 'kpng', 'to-cluster-ip')).toContain('0x00100000')
      const upgraded = await start({ writer })
      await upgraded.sync(view, fullSync)
      expect(nft('list', 'chain', 'ip', 'kpng', 'to-cluster-ip')).toContain('0x00004000')
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
      await upgraded.cleanup()
      expect(nft('list', 'tables').trim()).toBe('table ip foreign')
    })

    test.each([
      ['an element', ['delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }']],
      ['an element that is added', ['add', 'element', 'ip6', 'kpng', 'dropped', '{ fd00::1 . udp . 7 }']],
      ['all elements of a map', ['flush', 'map', 'ip', 'kpng', 'endpoints']],
      ['the rules of a chain', ['flush', 'chain', 'ip6', 'kpng', 'services']],
      ['a table', ['delete', 'table', 'ip', 'kpng']],
    ])('somebody changes %s: noticed and repaired (66)', async (_, command) => {
      const view = testView()
      const backend = await start({ writer })
      await backend.sync(view, fullSync)
      await pause(60)
      expect(reasons).toEqual([])
      nft(...command)
      await driftNoticed()
      await backend.sync(view, fullSync)
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
      await pause(60)
      expect(reasons).toEqual([])
    })

    test('a change to another table is not ours', async () => {
      await (await start({ writer })).sync(testView(), fullSync)
      nft('add table ip foreign')
      nft('add', 'set', 'ip', 'foreign', 'endpoints', '{ type ipv4_addr; }')
      await pause(80)
      expect(reasons).toEqual([])
    })

    test('a transaction that fails changes nothing', async () => {
      const view = testView()
      await (await start({ writer })).sync(view, fullSync)
      const before = elementLines(await readAll(netlink))
      const own = writer === 'netlink' ? netlink : command
      const add: Elements = new Map([['ip dropped', new Map([['\x01\x01\x01\x01\x06\0\0\0\0\x50\0\0', '']])]])
      const remove: Elements = new Map([['ip cluster-ips', new Map([['\x09\x09\x09\x09', '']])]])
      await expect(own.commit({ remove, add }, [])).rejects.toThrow(/transaction/)
      expect(elementLines(await readAll(netlink))).toEqual(before)
    })

    test('one service with 1,000 endpoints, and back to one', async () => {
      const view = testView()
      const backend = await start({ writer })
      await backend.sync(view, fullSync)
      const endpoints = Array.from({ length: 1000 }, (_, index) => endpoint(`10.7.${index >> 8}.${index & 255}`))
      const big = { name: 'big', ips: { clusterIps: ips('10.96.8.8') }, endpoints }
      await backend.sync(view, change(view, 'big', big))
      expect((await netlink.read('ip over-256')).size).toBe(1)
      await backend.sync(view, change(view, 'big', { ...big, endpoints: endpoints.slice(500, 501) }))
      expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
    })
  })

  test('affinity: chains are made once, for each time-out, in both families', async () => {
    const view = labView()
    const backend = await start({})
    await backend.sync(view, fullSync)
    for (const family of families) {
      expect(nft('list', 'chain', family, 'kpng', 'remember-600').match(/update @affinity/g)).toHaveLength(3)
    }
    const second = await start({})
    await second.sync(view, fullSync)
    expect(nft('list', 'chain', 'ip', 'kpng', 'remember-600').match(/update @affinity/g)).toHaveLength(3)
  })

  test('thousands of our own changes are not taken for those of others', async () => {
    const view = labView()
    const backend = await start({ writer: 'netlink' })
    await backend.sync(view, fullSync)
    for (let index = 0; index < 3000; index++) {
      const endpoints = [endpoint(`10.7.${index & 255}.1`), endpoint(`10.8.${index & 127}.1`)]
      await backend.sync(view, change(view, 'busy', { name: 'busy', ips: { clusterIps: ips('10.96.4.4') }, endpoints }))
    }
    await pause(60)
    expect(reasons).toEqual([])
    expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
  })

  test('a change by others during a burst of ours is noticed', async () => {
    const view = labView()
    const backend = await start({ writer: 'netlink' })
    await backend.sync(view, fullSync)
    for (let index = 0; index < 50; index++) {
      if (index === 20) nft('delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }')
      const endpoints = [endpoint(`10.7.${index}.1`)]
      await backend.sync(view, change(view, 'busy', { name: 'busy', ips: { clusterIps: ips('10.96.4.4') }, endpoints }))
    }
    await driftNoticed()
  })

  test('IPv6 can be left out (50)', async () => {
    await (await start({ ipv6: false })).sync(labView(), fullSync)
    expect(nft('list', 'tables').trim()).toBe('table ip kpng')
  })

  test('the ruleset that --dry-run prints is taken by nft', async () => {
    const { renderRuleset } = await import('./render.js')
    const view = labView()
    view.services.delete('default/sticky')
    const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: renderRuleset(view, options), encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(elementLines(await readAll(netlink))).toEqual(elementLines(wanted(view)))
  })
})
