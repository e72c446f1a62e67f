import { execFileSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { silentLog } from '@kpng/api'
import { ebpfBackend } from '@kpng/backend-ebpf'
import { iptablesBackend } from '@kpng/backend-iptables'
import { nftBackend } from '@kpng/backend-nft'
import { nftCapture, userspaceBackend } from '@kpng/backend-userspace'
import type { SteppedBackend } from '@kpng/dataplane'
import { lockName } from '@kpng/linux'
import { rememberChanges } from '@kpng/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Sandbox, whyNoEbpf } from '../../backends/ebpf/testing/sandbox.js'
import { ask, serve } from '../../backends/ebpf/testing/servers.js'
import { change, endpoint, fullSync, ips, tcp, thisNode, view } from '../../dataplane/testing/objects.js'
import { differences, machineState } from '../../scripts/machine-state.js'
import { whySkipped } from '../testing/network-namespace.js'
import { type Kept, leftoversBeside } from './leftovers.js'

// From each backend to each other one, in a network namespace and a cgroup of its own, under traffic. A process that ends leaves what
// `close` leaves. Switches to and from IPVS are a check of the VM suite.

const why = whyNoEbpf() ?? whySkipped('switches between backends', ['nft', 'iptables-nft', 'iptables-legacy'])

const web = (ip: string) => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  ports: [tcp(80, { nodePort: 30080 })],
  endpoints: [endpoint(ip)],
})
const viewOf = (ip: string) => ({ ...view([web(ip)]), node: thisNode({ addresses: ['172.30.0.1'] }) })

describe.skipIf(why !== undefined)('a switch', () => {
  let sandbox: Sandbox
  const servers: Server[] = []
  const logged: string[] = []
  const log = {
    ...silentLog,
    info: (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`),
  }
  let fresh: ReturnType<typeof machineState>

  const kinds = ['ebpf', 'nft', 'iptables', 'iptables-legacy', 'userspace'] as const
  type Kind = (typeof kinds)[number]

  const made: Record<Kind, () => SteppedBackend> = {
    ebpf: () =>
      ebpfBackend({
        ...{ cgroup: sandbox.cgroup, bpffs: sandbox.bpffs, maxEndpoints: 64, nodePortAddresses: ['all'] },
        ...{ tableName: 'kpng', leftovers: beside('ebpf') },
      }),
    nft: () => nftBackend({ tableName: 'kpng', leftovers: beside('nft'), log }),
    userspace: () =>
      userspaceBackend({
        ...{ capture: nftCapture({ log: silentLog, table: 'kpng-userspace' }), nodePortAddresses: ['all'] },
        ...{ mover: 'portable', leftovers: beside('userspacelin') },
      }),
    iptables: () => iptables('nft'),
    'iptables-legacy': () => iptables('legacy'),
  }
  const iptables = (flavour: 'nft' | 'legacy') =>
    iptablesBackend({
      ...{ flavour, name: 'kpng', localhostNodePorts: true, nodePortAddresses: ['all'], leftovers: beside('iptables') },
      onSysctlChanged: (path, before, value) => void rememberChanges({ [path]: { before, value } }, { log }),
    })
  const beside = (own: Kept) => leftoversBeside(own, log, sandbox.bpffs)

  const start = async (kind: Kind, of: ReturnType<typeof viewOf>) => {
    const backend = made[kind]()
    await backend.setup({ requestFullSync: () => {} })
    await backend.sync(of, fullSync)
    return backend
  }

  beforeAll(async () => {
    sandbox = await Sandbox.make()
    await sandbox.enter()
    writeFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', '0')
    for (const ip of ['10.244.0.1', '10.244.0.2', '172.30.0.1']) execFileSync('ip', ['address', 'add', ip, 'dev', 'lo'])
    execFileSync('ip', ['route', 'add', 'default', 'dev', 'lo'])
    for (const [ip, name] of [
      ['10.244.0.1', 'a'],
      ['10.244.0.2', 'b'],
    ] as const)
      servers.push((await serve(ip, name, 8080)).server)
    // What iptables makes by being asked stays: its own tables and chains.
    for (const flavour of ['nft', 'legacy'] as const) {
      const backend = iptables(flavour)
      await backend.setup({ requestFullSync: () => {} })
      await backend.sync(viewOf('10.244.0.1'), fullSync)
      await backend.cleanup()
    }
    const { restoreSysctls } = await import('@kpng/node')
    await restoreSysctls({ log })
    fresh = machineState()
  })
  afterAll(() => {
    for (const server of servers) server.close()
    sandbox?.remove()
  })

  const switches = kinds.flatMap((from) => kinds.flatMap((to) => (from === to ? [] : [[from, to] as const])))

  test.each(switches)(
    '%s → %s: no connection fails, and the old endpoint gets none after the first sync',
    async (from, to) => {
      const before = await start(from, viewOf('10.244.0.1'))
      expect((await ask('10.96.0.1', 80)).answer).toBe('a')
      await before.close()
      const failed: string[] = []
      let isOver = false
      const asking = (async () => {
        while (!isOver) {
          const { answer } = await ask('10.96.0.1', 80)
          if (!/^[ab]$/.test(answer)) failed.push(answer)
        }
      })()
      const of = viewOf('10.244.0.2')
      const backend = await start(to, of)
      // The removal follows the first sync at once.
      await backend.settled()
      const answers = new Set<string>()
      for (let asked = 0; asked < 20; asked++) answers.add((await ask('10.96.0.1', 80)).answer)
      expect([...answers]).toEqual(['b'])
      await backend.sync(of, change(of, 'web', web('10.244.0.1')))
      expect((await ask('10.96.0.1', 80)).answer).toBe('a')
      isOver = true
      await asking
      expect(failed).toEqual([])
      await backend.cleanup()
      const { restoreSysctls } = await import('@kpng/node')
      await restoreSysctls({ log })
      // What belongs to the whole machine, other tests change meanwhile.
      const left = differences(fresh, machineState()).filter(
        (line) => !/^. (?:mount|network namespace|sysctl .*nf_)/.test(line),
      )
      expect(left).toEqual([])
      expect(readdirSync(sandbox.bpffs).filter((name) => name.startsWith('kpng'))).toEqual([])
    },
  )

  test('what a killed userspace proxy left goes; what a running kpng holds stays', async () => {
    execFileSync('nft', ['add table ip kpng-userspace; add table ip kpng-ipvs-edge'])
    const held = await lockName('nft table kpng-userspace', 'another kpng')
    const first = await start('nft', viewOf('10.244.0.1'))
    await first.close()
    expect(execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' })).toContain('kpng-userspace')
    await held.release()
    const second = await start('nft', viewOf('10.244.0.1'))
    await second.close()
    const left = execFileSync('nft', ['list', 'tables'], { encoding: 'utf8' })
    expect(left).not.toContain('kpng-userspace')
    expect(left).toContain('kpng-ipvs-edge')
    expect(logged.join('\n')).toMatch(/Removed what another backend had left .*to-userspacelin/)
    execFileSync('nft', ['delete table ip kpng-ipvs-edge'])
    await second.cleanup()
  })
})
