import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type BpfSyscalls, loadBpf } from '@kpng/linux/bpf'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Attachment } from './kernel/attachment.js'
import { type Maps, PinnedMaps, tableMaps } from './kernel/maps.js'
import { frontendKeyOf, mappedBytes, sizesFor } from './layout.js'
import type { Entry } from './tables/entry.js'
import { keyText } from './tables/hash-table.js'
import { Tables, type TablesOptions } from './tables/tables.js'
import { Sandbox, whyNoEbpf } from './testing/sandbox.js'
import { ask, askOften, serve } from './testing/servers.js'

// Real sockets, real programs, and no nftables: what eBPF leaves alone is refused or unreachable.

const key = (ip: string, port: number) => keyText(frontendKeyOf(ip, port))

describe.skipIf(whyNoEbpf() !== undefined)('sockets in the cgroup', () => {
  const sizes = sizesFor(4096, true)
  let sandbox: Sandbox
  let sys: BpfSyscalls
  let maps: Maps
  let tables: Tables
  let attachment: Attachment
  let v4: Awaited<ReturnType<typeof serve>>[]
  let v6: Awaited<ReturnType<typeof serve>>[]
  const wanted = new Map<string, Entry>()

  const start = (hostNamespace: bigint, options: TablesOptions = { balancing: 'random' }) => {
    const folder = join(sandbox.bpffs, 'kpng')
    mkdirSync(folder, { recursive: true })
    const open = new PinnedMaps(sys, folder, sizes)
    maps = open.maps
    tables = new Tables(tableMaps(sys, maps, sizes), options)
    attachment = Attachment.load(sys, { folder, cgroup: sandbox.cgroup, maps, hostNamespace, counts: true })
    attachment.attach()
    open.settle()
  }
  const put = (ip: string, port: number, endpoints: Entry['endpoints'], affinitySeconds = 0) => {
    const entry: Entry = {
      key: key(ip, port),
      endpoints: endpoints.map(({ ip, port }) => ({ ip, port })),
      affinitySeconds,
    }
    wanted.set(entry.key, entry)
  }

  beforeAll(async () => {
    sandbox = await Sandbox.make()
    await sandbox.enter()
    sys = await loadBpf()
    v4 = [await serve('127.0.0.1', 'a'), await serve('127.0.0.1', 'b'), await serve('127.0.0.1', 'c')]
    v6 = [await serve('::1', 'a6'), await serve('::1', 'b6')]
    start(sys.networkNamespaceCookie())
    put('10.96.0.1', 80, v4)
    put('10.96.0.2', 80, v4, 3600)
    put('fd00:96::1', 80, v6)
    put('0.0.0.0', 30080, v4)
    put('::', 30080, v6)
    await tables.load(wanted)
    await tables.setNodeAddresses(
      new Map([
        [keyText(mappedBytes('10.9.9.1')), 0],
        [keyText(mappedBytes('fd00:9::1')), 0],
        [keyText(mappedBytes('127.0.0.1')), 1],
      ]),
    )
  })
  afterAll(() => {
    for (const { server } of [...(v4 ?? []), ...(v6 ?? [])]) server.close()
    attachment?.close()
    sandbox?.remove()
  })

  test.each([
    ['a cluster IP', '10.96.0.1', 80, ['a', 'b', 'c'], '10.96.0.1:80'],
    ['IPv6', 'fd00:96::1', 80, ['a6', 'b6'], '[fd00:96::1]:80'],
    ['IPv4 by a socket of IPv6', '::ffff:10.96.0.1', 80, ['a', 'b', 'c'], '[::ffff:10.96.0.1]:80'],
    ['a node port', '10.9.9.1', 30080, ['a', 'b', 'c'], '10.9.9.1:30080'],
    ['a node port of IPv6', 'fd00:9::1', 30080, ['a6', 'b6'], '[fd00:9::1]:30080'],
    ['a node port by a mapped address', '::ffff:10.9.9.1', 30080, ['a', 'b', 'c'], '[::ffff:10.9.9.1]:30080'],
    ['a node port on loopback', '127.0.0.1', 30080, ['a', 'b', 'c'], '127.0.0.1:30080'],
  ])('%s reaches each endpoint, and the socket names the Service', async (_title, host, port, servers, peer) => {
    const before = tables.connections(key(host, port)) ?? 0
    const seen = new Set<string>()
    const peers = new Set<string | undefined>()
    for (let time = 0; time < 60; time++) {
      const { answer, peer: named } = await ask(host, port)
      seen.add(answer)
      peers.add(named)
    }
    expect([...seen].sort()).toEqual(servers)
    expect([...peers]).toEqual([peer])
    if (host === '10.96.0.1') expect((tables.connections(key(host, port)) ?? 0) - before).toBe(60)
  })

  test('other addresses and ports are left alone', async () => {
    expect((await ask('127.0.0.1', 30081)).answer).toBe('ECONNREFUSED')
    expect((await ask('127.0.0.9', 30080)).answer).toBe('ECONNREFUSED')
    expect((await ask('10.96.0.1', 81)).answer).toBe('ENETUNREACH')
  })

  test('session affinity keeps a client on an endpoint while it serves', async () => {
    const [only, ...others] = Object.keys(await askOften(30, '10.96.0.2', 80))
    expect(others).toEqual([])
    const rest = v4.filter((_, index) => ['a', 'b', 'c'][index] !== only)
    put('10.96.0.2', 80, rest, 3600)
    await tables.change([[key('10.96.0.2', 80), wanted.get(key('10.96.0.2', 80))]])
    const after = Object.keys(await askOften(30, '10.96.0.2', 80))
    expect(after).toHaveLength(1)
    expect(after).not.toContain(only)
  })

  test('a change is seen by the next connect', async () => {
    for (let round = 0; round < 50; round++) {
      const one = v4[round % 3] as (typeof v4)[0]
      put('10.96.0.1', 80, [one])
      await tables.change([[key('10.96.0.1', 80), wanted.get(key('10.96.0.1', 80))]])
      expect((await ask('10.96.0.1', 80)).answer).toBe(['a', 'b', 'c'][round % 3])
    }
  })

  test('another process adopts the maps, and loopback is only for the namespace that it names', async () => {
    attachment.close()
    start(sys.networkNamespaceCookie() + 1n)
    expect(await tables.load(wanted)).toBe(0)
    expect((await ask('127.0.0.1', 30080)).answer).toBe('ECONNREFUSED')
    expect((await ask('10.9.9.1', 30080)).answer).toMatch(/^[abc]$/)
  })

  test('Maglev sends a namespace to one endpoint, the same after a restart', async () => {
    put('10.96.0.1', 80, v4)
    attachment.close()
    start(sys.networkNamespaceCookie(), { balancing: 'maglev' })
    await tables.load(wanted)
    const [only, ...others] = Object.keys(await askOften(30, '10.96.0.1', 80))
    expect(others).toEqual([])
    attachment.close()
    start(sys.networkNamespaceCookie(), { balancing: 'maglev' })
    await tables.load(wanted)
    expect(Object.keys(await askOften(10, '10.96.0.1', 80))).toEqual([only])
  })

  test('a removed frontend is left alone at once', async () => {
    await tables.change([[key('10.96.0.1', 80), undefined]])
    expect((await ask('10.96.0.1', 80)).answer).toBe('ENETUNREACH')
  })
})
