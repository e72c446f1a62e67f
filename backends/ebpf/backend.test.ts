import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect, type Server } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { silentLog } from '@kpng/api'
import { attachedPrograms, BpfError, loadBpf } from '@kpng/linux/bpf'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  change,
  endpoint,
  fullSync,
  ips,
  type TestService,
  tcp,
  thisNode,
  udp,
  view,
} from '../../dataplane/testing/objects.js'
import { bundle, programPath } from '../../linux/testing/bundle.js'
import { ebpfBackend } from './backend.js'
import { Attachment } from './kernel/attachment.js'
import { removePins } from './kernel/removal.js'
import type { EbpfOptions } from './options.js'
import { Sandbox, whyNoEbpf } from './testing/sandbox.js'
import { ask, askOften, serve } from './testing/servers.js'

// The whole backend on a real kernel: nftables and eBPF in one network namespace, with this process as the client.

const web = (...endpoints: string[]): TestService => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') },
  ports: [tcp(80, { nodePort: 30080 })],
  endpoints: endpoints.map((each) => endpoint(each)),
})
const others: TestService[] = [
  { name: 'dns', ips: { clusterIps: ips('10.96.0.10') }, ports: [udp(53)], endpoints: [endpoint('10.244.0.1')] },
  { name: 'empty', ips: { clusterIps: ips('10.96.0.11') }, ports: [tcp(80)] },
  {
    name: 'ranges',
    ips: { clusterIps: ips('10.96.0.12'), loadBalancerIps: ips('192.0.2.1') },
    ports: [tcp(80)],
    ipFilters: [{ targetIps: ips('192.0.2.1'), sourceRanges: ['203.0.113.0/24'] }],
    endpoints: [endpoint('10.244.0.1')],
  },
]
const both = ['10.244.0.1 fd00:244::1', '10.244.0.2 fd00:244::2']
const wholeView = () => ({ ...view([web(...both), ...others]), node: thisNode({ addresses: ['172.30.0.1'] }) })
const clusterIp = { kind: 'clusterIP', family: 'IPv4', address: '10.96.0.1', protocol: 'tcp', port: 80 } as const

describe.skipIf(whyNoEbpf() !== undefined)('the eBPF backend', () => {
  let sandbox: Sandbox
  const servers: Server[] = []
  const running: ReturnType<typeof ebpfBackend>[] = []
  const reasons: string[] = []
  const children: ChildProcess[] = []

  const options = (): EbpfOptions => ({
    ...{ cgroup: sandbox.cgroup, bpffs: sandbox.bpffs, maxEndpoints: 1024, counters: true },
    ...{ driftCheckIntervalMs: 20, nodePortAddresses: ['all'], log: silentLog },
  })

  /** A restart if one runs already. */
  async function start(given: EbpfOptions = {}, of = wholeView()) {
    for (const before of running.splice(0)) await before.close()
    const backend = ebpfBackend({ ...options(), ...given })
    running.push(backend)
    await backend.setup({ requestFullSync: (reason) => reasons.push(reason) })
    await backend.sync(of, fullSync)
    return backend
  }

  const pins = () => readdirSync(join(sandbox.bpffs, 'kpng')).sort()

  beforeAll(async () => {
    sandbox = await Sandbox.make()
    await sandbox.enter()
    const addresses = ['10.244.0.1', '10.244.0.2', '172.30.0.1', 'fd00:244::1', 'fd00:244::2']
    for (const ip of addresses)
      spawnSync('ip', ['address', 'add', ip, 'dev', 'lo', ...(ip.includes(':') ? ['nodad'] : [])])
    // Packets to addresses of Services need a route, or the kernel refuses them before nftables sees them.
    spawnSync('ip', ['route', 'add', 'default', 'dev', 'lo'])
    for (const [
      ip,
      name,
    ] of [['10.244.0.1', 'a'], ['10.244.0.2', 'b'], ['fd00:244::1', 'a6'], ['fd00:244::2', 'b6']] as const) // biome-ignore format: one line
      servers.push((await serve(ip, name, 8080)).server)
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    for (const backend of running.splice(0)) await backend.cleanup()
    reasons.length = 0
  })
  afterAll(() => {
    for (const server of servers) server.close()
    sandbox?.remove()
  })

  test('serves sockets, and leaves the rest to nftables', async () => {
    const backend = await start()
    const { peer } = await ask('10.96.0.1', 80)
    expect(peer).toBe('10.96.0.1:80')
    expect(Object.keys(await askOften(40, '10.96.0.1', 80)).sort()).toEqual(['a', 'b'])
    expect(Object.keys(await askOften(40, 'fd00:96::1', 80)).sort()).toEqual(['a6', 'b6'])
    for (const host of ['172.30.0.1', '127.0.0.1']) {
      expect(Object.keys(await askOften(40, host, 30080)).sort()).toEqual(['a', 'b'])
    }
    expect((await ask('10.96.0.11', 80)).answer).toBe('ECONNREFUSED')
    expect((await ask('10.96.0.12', 80)).answer).toBe('a')
    const [counted] = (await backend.observations?.connections?.()) ?? []
    expect(counted).toMatchObject({ service: 'web', connections: 161 })
    expect(backend.features?.()).toMatchObject({ name: 'eBPF and nftables', localhostNodePorts: true })
    const held = await backend.held?.(clusterIp)
    expect(held).toMatchObject({ connections: 41 })
    expect([...(held?.inside ?? [])].sort()).toEqual(['10.244.0.1:8080', '10.244.0.2:8080'])
    expect(await backend.held?.({ ...clusterIp, address: '10.96.0.10', port: 53, protocol: 'udp' })).toMatchObject({
      inside: ['10.244.0.1:8080'],
    })
    expect(await backend.held?.({ ...clusterIp, port: 81 })).toMatchObject({ inside: [] })
  })

  test('node ports on loopback can be switched off', async () => {
    await start({ localhostNodePorts: false })
    expect((await ask('127.0.0.1', 30080)).answer).toBe('ECONNREFUSED')
    expect((await ask('172.30.0.1', 30080)).answer).toMatch(/^[ab]$/)
  })

  test('a change is seen by the next connect; a Service that goes is refused or passed on', async () => {
    const of = wholeView()
    const backend = await start({}, of)
    for (let round = 0; round < 20; round++) {
      await backend.sync(of, change(of, 'web', web(both[round % 2] as string)))
      expect((await ask('10.96.0.1', 80)).answer).toBe(round % 2 === 0 ? 'a' : 'b')
    }
    await backend.sync(of, change(of, 'web', web()))
    expect((await ask('10.96.0.1', 80)).answer).toBe('ECONNREFUSED')
    expect(await backend.held?.(clusterIp)).toMatchObject({ inside: [] })
    await backend.sync(of, change(of, 'web', web(...both)))
    expect((await ask('10.96.0.1', 80)).answer).toMatch(/^[ab]$/)
  })

  test('works while no process runs; the next one adopts maps and sockets', async () => {
    const first = await start()
    const open = connect({ host: '10.96.0.1', port: 80, allowHalfOpen: true })
    await once(open, 'connect')
    await first.close()
    running.length = 0
    expect(pins()).toEqual(['connect4', 'connect6', 'getpeername4', 'getpeername6', 'maps-1'])
    expect((await ask('10.96.0.1', 80)).peer).toBe('10.96.0.1:80')
    const second = await start()
    expect(open.remoteAddress).toBe('10.96.0.1')
    open.destroy()
    expect((await second.held?.(clusterIp))?.connections).toBe(2)
  })

  test('other sizes and another layout are taken over without a gap', async () => {
    await start()
    const open = connect({ host: '10.96.0.1', port: 80, allowHalfOpen: true })
    await once(open, 'connect')
    await start({ maxEndpoints: 4096 })
    expect(pins()).toContain('maps-1')
    expect(pins()).not.toContain('maps-1-new')
    expect((await ask('10.96.0.1', 80)).answer).toMatch(/^[ab]$/)
    expect(open.remoteAddress).toBe('10.96.0.1')
    open.destroy()
    for (const before of running.splice(0)) await before.close()
    renameSync(join(sandbox.bpffs, 'kpng', 'maps-1'), join(sandbox.bpffs, 'kpng', 'maps-0'))
    await start()
    expect(pins()).not.toContain('maps-0')
    expect((await ask('10.96.0.1', 80)).answer).toMatch(/^[ab]$/)
  })

  test('cleanup removes everything; a second kpng of one name is refused', async () => {
    const backend = await start()
    const second = ebpfBackend({ ...options(), tableName: 'kpng' })
    await expect(second.setup({ requestFullSync: () => {} })).rejects.toThrow(/in use/)
    await second.close()
    await backend.cleanup()
    expect(readdirSync(sandbox.bpffs).filter((name) => name.startsWith('kpng'))).toEqual([])
    // Without a route, only a program could send the socket anywhere.
    spawnSync('ip', ['route', 'delete', 'default', 'dev', 'lo'])
    expect((await ask('10.96.0.1', 80)).answer).toBe('ENETUNREACH')
    spawnSync('ip', ['route', 'add', 'default', 'dev', 'lo'])
    expect(spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout).toBe('')
  })

  test.each([
    ['a pin that is gone', () => rmSync(join(sandbox.bpffs, 'kpng', 'connect4')), 'the pin of connect4 is gone'],
    [
      'maps whose pins are gone',
      () => rmSync(join(sandbox.bpffs, 'kpng', 'maps-1'), { recursive: true }),
      'the pin of the map frontends is gone',
    ],
    [
      'a cgroup that was made again',
      () => {
        sandbox.leave()
        rmdirSync(sandbox.cgroup)
        mkdirSync(sandbox.cgroup)
        writeFileSync(join(sandbox.cgroup, 'cgroup.procs'), String(process.pid))
      },
      'is no longer attached',
    ],
  ])('%s is noticed and repaired', async (_title, damage, reason) => {
    const of = wholeView()
    const backend = await start({}, of)
    damage()
    await expect.poll(() => reasons.join(), { timeout: 90_000 }).toContain(reason)
    await backend.sync(of, fullSync)
    expect((await ask('10.96.0.1', 80)).peer).toBe('10.96.0.1:80')
    expect(pins()).toEqual(['connect4', 'connect6', 'getpeername4', 'getpeername6', 'maps-1'])
  })

  test('a cgroup that is gone is said, and nftables goes on', async () => {
    const of = wholeView()
    const backend = await start({}, of)
    sandbox.leave()
    rmdirSync(sandbox.cgroup)
    try {
      await expect.poll(() => reasons.join(), { timeout: 90_000 }).toContain('is gone')
      await expect(backend.sync(of, fullSync)).rejects.toThrow(/The cgroup .* is gone/)
      expect((await ask('10.96.0.1', 80)).answer).toMatch(/^[ab]$/)
    } finally {
      mkdirSync(sandbox.cgroup)
      writeFileSync(join(sandbox.cgroup, 'cgroup.procs'), String(process.pid))
    }
  })

  test('maps that are full leave Services to nftables, which is said', async () => {
    const warnings: string[] = []
    const log = { ...silentLog, warn: (message: string) => warnings.push(message) }
    const many = Array.from({ length: 100 }, (_, index) => `10.245.0.${index + 1}`)
    const large: TestService = {
      ...web(...many),
      name: 'large',
      ips: { clusterIps: ips('10.96.0.20') },
      ports: [tcp(80)],
    }
    const of = { ...view([web(...both), large]), node: thisNode() }
    await start({ maxEndpoints: 64, log }, of)
    expect(warnings.join()).toContain('Raise --ebpf-max-endpoints')
    expect((await ask('10.96.0.1', 80)).peer).toBe('10.96.0.1:80')
  })

  test('killed at any moment and started again, it fails no connection', async () => {
    const program = programPath('ebpf-proxy')
    await bundle(new URL('testing/proxy.ts', import.meta.url), program)
    try {
      const run = async () => {
        const child = spawn(process.execPath, [program, sandbox.cgroup, sandbox.bpffs], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        children.push(child)
        await once(createInterface({ input: child.stdout }), 'line')
        return child
      }
      let child = await run()
      let asked = 0
      const failed: string[] = []
      let isOver = false
      const asking = (async () => {
        while (!isOver) {
          const { answer, peer } = await ask('10.96.0.1', 80)
          asked++
          if (!/^[ab]$/.test(answer) || peer !== '10.96.0.1:80') failed.push(`${answer} ${peer}`)
        }
      })()
      for (let round = 0; round < 2; round++) {
        const before = asked
        await expect.poll(() => asked - before, { timeout: 90_000 }).toBeGreaterThan(100)
        child.kill('SIGKILL')
        await once(child, 'close')
        child = await run()
      }
      isOver = true
      await asking
      expect(failed).toEqual([])
    } finally {
      rmSync(program, { force: true })
      // Its pins and tables go with the backend below.
      for (const child of children.splice(0)) {
        child.kill('SIGKILL')
        if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
      }
      await start()
    }
  })

  test('what a machine lacks is said', async () => {
    const failing = async (given: EbpfOptions) => {
      const backend = ebpfBackend({ ...options(), ...given })
      try {
        await backend.setup({ requestFullSync: () => {} })
      } finally {
        await backend.close()
      }
    }
    await expect(failing({ cgroup: '/tmp' })).rejects.toThrow('/tmp is not a cgroup of version 2.')
    await expect(failing({ bpffs: '/proc/kpng' })).rejects.toThrow(/\/proc\/kpng is not a bpf file system.*--bpffs/)
    expect(() => ebpfBackend({ maxEndpoints: 0 })).toThrow('maxEndpoints 0 is not a number')
    expect(existsSync(join(sandbox.bpffs, 'kpng'))).toBe(false)
  })

  test('a kernel that is too old is named before anything is made', async () => {
    const sys = await loadBpf()
    const tooOld = vi.spyOn(sys, 'networkNamespaceCookie').mockImplementation(() => {
      throw new BpfError('name the network namespace (SO_NETNS_COOKIE, Linux 5.14)', 'ENOPROTOOPT')
    })
    const backend = ebpfBackend(options())
    await expect(backend.setup({ requestFullSync: () => {} })).rejects.toThrow(/SO_NETNS_COOKIE.*needs 5\.14 or newer/)
    await backend.close()
    tooOld.mockRestore()
    const noPrograms = vi.spyOn(Attachment, 'load').mockImplementation(() => {
      throw new BpfError('load the program connect4', 'EINVAL')
    })
    const second = ebpfBackend(options())
    await expect(second.setup({ requestFullSync: () => {} })).rejects.toThrow('load the program connect4')
    await second.close()
    noPrograms.mockRestore()
    expect(readdirSync(sandbox.bpffs).filter((name) => name.startsWith('kpng'))).toEqual([])
    expect(spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout).toBe('')
  })

  test('what is pinned in the place of kpng by another user is refused', async () => {
    expect(statSync(sandbox.bpffs).mode & 0o777).toBe(0o700)
    mkdirSync(join(sandbox.bpffs, 'kpng'))
    chownSync(join(sandbox.bpffs, 'kpng'), 65534, 65534)
    const backend = ebpfBackend(options())
    await expect(backend.setup({ requestFullSync: () => {} })).rejects.toThrow('belongs to another user (65534)')
    await backend.close()
    rmdirSync(join(sandbox.bpffs, 'kpng'))
  })

  test('programs that are pinned elsewhere are seen, and end when they are removed, even if a process has them open', async () => {
    const sys = await loadBpf()
    const { ino } = statSync(sandbox.cgroup, { bigint: true })
    const ours = () => attachedPrograms(sys).filter(({ cgroupId }) => cgroupId === ino)
    await start()
    expect(
      ours()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['kpng_connect4', 'kpng_connect6', 'kpng_getpeer4', 'kpng_getpeer6'])
    await removePins({ bpffs: sandbox.bpffs, pinName: 'kpng' })
    expect(ours()).toEqual([])
    expect(readdirSync(sandbox.bpffs).filter((name) => name.startsWith('kpng'))).toEqual([])
  })
})
