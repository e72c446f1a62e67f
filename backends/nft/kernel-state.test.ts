import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import type { SyncStep } from '@kpng/client'
import { endpointKey, FrontendTable } from '@kpng/dataplane'
import { loadLibc, NETLINK_NETFILTER, NetlinkSocket } from '@kpng/linux'
import { type Elements, readNftGeneration, Tables, tableFamilies } from '@kpng/linux/nftables'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  change,
  endpoint,
  fullSync,
  ips,
  item,
  type TestView,
  udp,
  view as viewOf,
} from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import { ElementState } from './elements/element-state.js'
import { type NftOptions, settingsOf } from './options.js'
import { nftRuleset } from './rules/skeleton.js'
import { labView, options } from './testing/cases.js'
import { elementLines } from './testing/element-lines.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { heldElements, heldIn, nft, RunningBackends } from './testing/running.js'

// What is in the kernel after a start, a restart, a change by others, an upgrade. No packets: those are in kernel-flow.test.ts.

const wanted = (view: TestView, given: NftOptions = options): Elements => {
  const settings = settingsOf(given)
  const table = new FrontendTable(settings.dataplane)
  table.apply(view, fullSync, { families: ['IPv4', 'IPv6'], addresses: [] })
  return new ElementState(settings).rebuild(table)
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.skipIf(whyNoKernel() !== undefined)('the tables in the kernel', () => {
  const backends = new RunningBackends()
  const { reasons } = backends
  const start = (given: NftOptions = {}) => backends.start(given)
  let socket: NetlinkSocket

  beforeAll(async () => {
    await enterNewNamespace()
    socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
  })
  afterEach(async () => {
    await backends.end()
    spawnSync('nft', ['delete', 'table', 'ip', 'foreign'])
  })

  const driftNoticed = async () => {
    await expect.poll(() => reasons.length, { timeout: 90_000 }).toBeGreaterThan(0)
    reasons.length = 0
  }

  test('holds after the first sync exactly what the view asks for', async () => {
    const view = labView()
    await (await start()).sync(view, fullSync)
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })

  test('many services come in several transactions, and nobody else is blamed for them', async () => {
    const view = viewOf(
      Array.from({ length: 1100 }, (_, index) => ({
        name: `service-${index}`,
        ips: { clusterIps: ips(`10.97.${index >> 8}.${index & 255}`) },
        endpoints: [endpoint('10.244.1.1'), endpoint('10.244.1.2')],
      })),
    )
    const backend = await start()
    const steps: SyncStep[] = []
    await backend.sync(view, fullSync, steps)
    expect(steps.filter(({ name }) => name === 'transaction').length).toBeGreaterThan(2)
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    await backend.sync(view, change(view, 'service-7', undefined))
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    expect(reasons).toEqual([])
  })

  test('a change is written', async () => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    const now = { name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.244.9.9')] }
    await backend.sync(view, change(view, 'web', now))
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    await backend.sync(view, change(view, 'web', undefined))
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })

  test('each transaction is a step of a traced sync, and so is the search for stale flows', async () => {
    const dns = { name: 'dns', ips: { clusterIps: ips('10.96.0.10') }, ports: [udp(53)] }
    const view = viewOf([{ ...dns, endpoints: [endpoint('10.244.1.1')] }])
    const backend = await start({ ipv6: false })
    const looked: unknown[] = []
    const { observations } = backend
    if (observations) {
      observations.listener = {
        staleFlows: (family, durationMs, deleted) => looked.push([family, durationMs >= 0, deleted]),
      }
    }
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
    // The tables were made before, by `setup`.
    expect(await traced(fullSync)).toEqual([['transaction', elements], conntrack])
    const moved = change(view, 'dns', { ...dns, endpoints: [endpoint('10.244.1.2')] })
    expect(await traced(moved)).toEqual([['transaction', 2], conntrack])
    expect(await traced(change(view, 'none', undefined))).toEqual([])
    await expect
      .poll(() => looked)
      .toEqual([
        ['IPv4', true, 0],
        ['IPv4', true, 0],
      ])
  })

  test('a restart adopts what is there and writes nothing (81)', async () => {
    const view = labView()
    await (await start()).sync(view, fullSync)
    const generation = await readNftGeneration(socket)
    await (await start()).sync(view, fullSync)
    expect(await readNftGeneration(socket)).toBe(generation)
  })

  test('a restart writes only what changed meanwhile (81)', async () => {
    const view = labView()
    await (await start()).sync(view, fullSync)
    view.services.set(
      'default/new',
      item({ name: 'new', ips: { clusterIps: ips('10.96.5.5') }, endpoints: [endpoint('10.244.1.10')] }),
    )
    view.services.delete('default/solo')
    await (await start()).sync(view, fullSync)
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })

  test('another version of the rules is replaced, foreign tables are not touched (79, 81)', async () => {
    nft('add table ip foreign')
    const view = labView()
    await (await start({ masqueradeBit: 20 })).sync(view, fullSync)
    expect(nft('list', 'chain', 'ip', 'kpng', 'to-cluster-ip')).toContain('0x00100000')
    const upgraded = await start()
    await upgraded.sync(view, fullSync)
    expect(nft('list', 'chain', 'ip', 'kpng', 'to-cluster-ip')).toContain('0x00004000')
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
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
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    await pause(60)
    expect(reasons).toEqual([])
    nft(...command)
    await driftNoticed()
    await backend.sync(view, fullSync)
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    await pause(60)
    expect(reasons).toEqual([])
  })

  test.each([
    ['an element', ['delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }']],
    ['a table', ['delete', 'table', 'ip', 'kpng']],
    ['everything', ['flush', 'ruleset']],
  ])('somebody changes %s: the kernel tells, before any look (66)', async (_, command) => {
    const view = labView()
    const backend = await start({ driftCheckIntervalMs: 3_600_000 })
    await backend.sync(view, fullSync)
    for (let time = 1; time <= 3; time++) {
      nft(...command)
      await driftNoticed()
      await backend.sync(view, fullSync)
    }
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    expect(reasons).toEqual([])
  })

  test('whose elements were repaired is told, and nothing at the start', async () => {
    const view = labView()
    const backend = await start()
    const told: (readonly string[])[] = []
    const { observations } = backend
    if (observations) observations.listener = { repaired: (services) => told.push(services) }
    await backend.sync(view, fullSync)
    await backend.sync(view, fullSync)
    expect(told).toEqual([])
    nft('delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }')
    await driftNoticed()
    await backend.sync(view, fullSync)
    expect(told).toEqual([[backend.frontends.get('10.96.0.8:80/tcp')?.service]])
  })

  test('a change to another table is not ours', async () => {
    await (await start()).sync(labView(), fullSync)
    nft('add table ip foreign')
    nft('add', 'set', 'ip', 'foreign', 'endpoints', '{ type ipv4_addr; }')
    await pause(80)
    expect(reasons).toEqual([])
  })

  test('a transaction that fails changes nothing', async () => {
    const view = labView()
    await (await start()).sync(view, fullSync)
    const before = elementLines(await heldElements())
    const add: Elements = new Map([['ip dropped', new Map([['\x01\x01\x01\x01\x06\0\0\0\0\x50\0\0', '']])]])
    const remove: Elements = new Map([['ip cluster-ips', new Map([['\x09\x09\x09\x09', '']])]])
    const ruleset = nftRuleset(settingsOf(options))
    const tables = await Tables.open({ libc: await loadLibc(), families: tableFamilies, ruleset, log: silentLog })
    await expect(tables.commit({ remove, add })).rejects.toThrow(/transaction/)
    tables.close()
    expect(elementLines(await heldElements())).toEqual(before)
  })

  test('one service with 1,000 endpoints, and back to one', async () => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    const endpoints = Array.from({ length: 1000 }, (_, index) => endpoint(`10.7.${index >> 8}.${index & 255}`))
    const big = { name: 'big', ips: { clusterIps: ips('10.96.8.8') }, endpoints }
    await backend.sync(view, change(view, 'big', big))
    expect((await heldIn('ip over-256')).size).toBe(1)
    await backend.sync(view, change(view, 'big', { ...big, endpoints: endpoints.slice(500, 501) }))
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })

  test('affinity: chains are made once, for each time-out, in both families', async () => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    for (const family of tableFamilies) {
      expect(nft('list', 'chain', family, 'kpng', 'remember-600').match(/update @affinity/g)).toHaveLength(3)
    }
    const second = await start()
    await second.sync(view, fullSync)
    expect(nft('list', 'chain', 'ip', 'kpng', 'remember-600').match(/update @affinity/g)).toHaveLength(3)
  })

  test('thousands of our own changes are not taken for those of others', async () => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    for (let index = 0; index < 3000; index++) {
      const endpoints = [endpoint(`10.7.${index & 255}.1`), endpoint(`10.8.${index & 127}.1`)]
      await backend.sync(view, change(view, 'busy', { name: 'busy', ips: { clusterIps: ips('10.96.4.4') }, endpoints }))
    }
    await pause(60)
    expect(reasons).toEqual([])
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })

  test('a change by others during a burst of ours is noticed', async () => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    for (let index = 0; index < 50; index++) {
      if (index === 20) nft('delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }')
      const endpoints = [endpoint(`10.7.${index}.1`)]
      await backend.sync(view, change(view, 'busy', { name: 'busy', ips: { clusterIps: ips('10.96.4.4') }, endpoints }))
    }
    await driftNoticed()
  })

  test('two proxies with tables of their own serve side by side, and clean up their own', async () => {
    const main = await start({ ipv6: false })
    const special = nftBackend({ ...options, ipv6: false, tableName: 'kpng-special' })
    await special.setup({ requestFullSync: () => {} })
    const service = (name: string, address: string) =>
      viewOf([{ name, ips: { clusterIps: ips(address) }, endpoints: [endpoint('10.244.1.1')] }])
    await main.sync(service('a', '10.96.0.1'), fullSync)
    await special.sync(service('b', '10.96.0.2'), fullSync)
    await pause(60)
    expect(reasons).toEqual([])
    expect(nft('list', 'set', 'ip', 'kpng', 'cluster-ips')).toContain('10.96.0.1 }')
    expect(nft('list', 'set', 'ip', 'kpng-special', 'cluster-ips')).toContain('10.96.0.2 }')
    await special.cleanup()
    expect(nft('list', 'tables').trim()).toBe('table ip kpng')
  })

  test('a second proxy with the same tables is told who has them, and does not start', async () => {
    await start()
    await expect(nftBackend(options).setup({ requestFullSync: () => {} })).rejects.toThrow(
      `"nft table kpng" is in use on this node by kpng (pid ${process.pid})`,
    )
  })

  test('an upgrade of the rules keeps session affinity, with its times', async () => {
    const view = labView()
    await (await start({ masqueradeBit: 20 })).sync(view, fullSync)
    const client = '172.30.0.2 . 10.96.0.9 . tcp . 80'
    nft(`add element ip kpng affinity { ${client} timeout 600s expires 300s : 10.244.1.10 . 8080 }`)
    await (await start()).sync(view, fullSync)
    expect(nft('list', 'chain', 'ip', 'kpng', 'to-cluster-ip')).toContain('0x00004000')
    expect(nft('list', 'map', 'ip', 'kpng', 'affinity')).toMatch(
      /172\.30\.0\.2 \. 10\.96\.0\.9 \. tcp \. 80 timeout 10m expires (4m|5m)\S* : 10\.244\.1\.10 \. 8080/,
    )
  })

  test('remembered clients in another form do not prevent an upgrade', async () => {
    nft('add table ip kpng')
    const type = 'typeof ip saddr . ip daddr . meta l4proto . th dport : ip daddr'
    nft(`add map ip kpng affinity { ${type}; flags dynamic,timeout; size 100; }`)
    nft('add element ip kpng affinity { 172.30.0.2 . 10.96.0.9 . tcp . 80 timeout 600s : 10.244.1.10 }')
    const view = labView()
    await (await start()).sync(view, fullSync)
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
    expect(nft('list', 'map', 'ip', 'kpng', 'affinity')).not.toContain('172.30.0.2')
  })

  test('what it holds for a frontend can be read back, and shows what somebody changed', async () => {
    const view = labView()
    const backend = await start({ counters: true, driftCheckIntervalMs: 0 })
    await backend.sync(view, fullSync)
    let compared = 0
    for (const frontend of backend.frontends.all()) {
      const held = await backend.held?.(frontend)
      expect(new Set(held?.inside)).toEqual(new Set(frontend.inside.endpoints.map(endpointKey)))
      expect(new Set(held?.outside)).toEqual(new Set(frontend.outside.endpoints.map(endpointKey)))
      if (frontend.outside.endpoints.length === 0) expect(held?.otherwise).toBe(frontend.outside.otherwise)
      expect(held?.sessionAffinity !== undefined).toBe(frontend.sessionAffinitySeconds !== undefined)
      expect(held?.connections).toBe(0)
      compared++
    }
    expect(compared).toBeGreaterThan(30)
    const web = { kind: 'clusterIP', family: 'IPv4', address: '10.96.0.8', protocol: 'tcp', port: 80 } as const
    nft('delete', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.8 . tcp . 80 . 0 }')
    const wantedInside = backend.frontends.get('10.96.0.8:80/tcp')?.inside.endpoints.map(endpointKey) ?? []
    // A gap does not hide what is behind it.
    expect(new Set((await backend.held?.(web))?.inside)).toEqual(new Set(wantedInside.slice(1)))
    expect(await backend.held?.({ ...web, address: '10.96.99.99' })).toBeUndefined()
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
    expect(elementLines(await heldElements())).toEqual(elementLines(wanted(view)))
  })
})
