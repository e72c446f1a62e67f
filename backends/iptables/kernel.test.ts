import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { silentLog } from '@kpng/api'
import { readPacketCounter } from '@kpng/linux'
import { whySkipped } from '@kpng/linux/testing'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { change, endpoint, fullSync, ips, type TestService, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { enterNewNamespace } from '../../linux/testing/index.js'
import { iptablesBackend } from './backend.js'
import type { Flavour } from './flavour.js'
import type { IptablesOptions } from './options.js'
import { renderRules } from './render.js'

// What is in the kernel, by the programs of both flavours, in a network namespace without traffic.

const whyNot = whySkipped('the iptables backend on a real kernel', 'iptables-nft', 'iptables-legacy')

const run = (program: string, args: readonly string[], input = ''): string =>
  execFileSync(program, args, { input, encoding: 'utf8' })

const web: TestService = {
  name: 'web',
  type: 'LoadBalancer',
  externalTrafficToLocal: true,
  ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1'), loadBalancerIps: ips('192.0.2.1', '2001:db8:2::1') },
  ipFilters: [{ targetIps: ips('192.0.2.1'), sourceRanges: ['203.0.113.0/24'] }],
  ports: [tcp(80, { nodePort: 30080 }), udp(53)],
  endpoints: [
    endpoint('10.244.1.1 fd00:244::1', { local: true }),
    endpoint('10.244.2.1 fd00:244:2::1', { scopes: ['internal', 'cluster'] }),
  ],
}
const sticky: TestService = {
  name: 'sticky',
  ips: { clusterIps: ips('10.96.0.2') },
  sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } },
  endpoints: [endpoint('10.244.1.1'), endpoint('10.244.1.2'), endpoint('10.244.1.3')],
}
const empty: TestService = { name: 'empty', ips: { clusterIps: ips('10.96.0.3'), externalIps: ips('198.51.100.3') } }
const whole: TestService = { ...sticky, name: 'whole', mapIp: true, ips: { externalIps: ips('198.51.100.9') } }

const foreign = `*nat
:CNI-DN-1 - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-DN-1
-A CNI-DN-1 -p tcp -m tcp --dport 9999 -j DNAT --to-destination 10.244.1.9:80
-A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j MASQUERADE
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A FORWARD -i docker0 -j ACCEPT
COMMIT
*mangle
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
`

describe.skipIf(whyNot !== undefined)('in the kernel', () => {
  const reasons: string[] = []
  let running: ReturnType<typeof iptablesBackend>[] = []
  beforeAll(enterNewNamespace)
  afterEach(async () => {
    for (const backend of running) await backend.cleanup()
    running = []
    reasons.length = 0
    for (const program of ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']) {
      for (const table of ['nat', 'filter', 'mangle'])
        for (const what of ['-F', '-X']) run(program, ['-t', table, what])
    }
  })

  /** Time for some checks for drift. It proves less on a busy machine, and fails on none. */
  const severalChecks = () => new Promise((resolve) => setTimeout(resolve, 300))

  /** A second one of the same name is a restart: close the first. */
  async function start(given: IptablesOptions) {
    const backend = iptablesBackend({ log: silentLog, name: 'kpng', driftCheckIntervalMs: 50, ...given })
    running.push(backend)
    await backend.setup({ requestFullSync: (reason) => reasons.push(reason) })
    return backend
  }

  describe.each(['nft', 'legacy'] as const)('%s', (flavour: Flavour) => {
    const program = `iptables-${flavour}`
    const saved = (family: '' | '6' = '') =>
      run(`ip${family}tables-${flavour}-save`, [])
        .split('\n')
        .filter((line) => !line.startsWith('#'))
        .map((line) => line.replace(/\[\d+:\d+\]/, ''))
        .sort()

    test('a restart writes the same again, and removes what its Services no longer need', async () => {
      const first = await start({ flavour })
      expect(await first.hasRules?.()).toBe(false)
      const services = view([web, sticky, empty, whole])
      await first.sync(services, fullSync)
      const before = [saved(), saved('6')]
      expect(before[0]?.filter((line) => line.startsWith('-A KUBE-')).length).toBeGreaterThan(30)
      await first.close()
      const second = await start({ flavour })
      expect(await second.hasRules?.()).toBe(true)
      await second.sync(services, fullSync)
      expect([saved(), saved('6')]).toEqual(before)
      await second.close()
      const third = await start({ flavour })
      await third.sync(view([web]), fullSync)
      expect(saved().filter((line) => line.includes('default/sticky'))).toEqual([])
      expect(reasons).toEqual([])
    })

    test('in a large cluster, rules that draw endpoints are printed as they are written: looking for drift is quick then', async () => {
      const endpoints = [1, 2, 3, 4, 5, 6, 7].map((last) => endpoint(`10.244.2.${last}`))
      const services = view([{ name: 'many', ips: { clusterIps: ips('10.96.0.4') }, endpoints }])
      const backend = await start({ flavour, largeClusterEndpoints: 0, ipv6: false })
      await backend.sync(services, fullSync)
      const written = renderRules(services, { largeClusterEndpoints: 0, ipv6: false }).split('\n')
      const drawn = saved().filter((line) => line.includes('-j DNAT'))
      expect(drawn).toHaveLength(7)
      expect(drawn).toEqual(written.filter((line) => line.includes('-j DNAT')).sort())
    })

    test('changes leave what a full write leaves, and are not taken for drift', async () => {
      const backend = await start({ flavour })
      const services = view([web, sticky])
      await backend.sync(services, fullSync)
      await backend.sync(services, change(services, 'sticky', { ...sticky, endpoints: [endpoint('10.244.1.7')] }))
      await backend.sync(services, change(services, 'whole', whole))
      await backend.sync(services, change(services, 'web', undefined))
      await backend.sync(services, change(services, 'empty', empty))
      const after = saved()
      await backend.close()
      await (await start({ flavour })).sync(services, fullSync)
      expect(saved()).toEqual(after)
      await severalChecks()
      expect(reasons).toEqual([])
    })

    test.each<[string, readonly string[], RegExp]>([
      ['a chain is flushed', ['-t', 'nat', '-F', 'KUBE-SERVICES'], /KUBE-SERVICES in the table nat has other rules/],
      ['the table nat is flushed', ['-t', 'nat', '-F'], /the table nat/],
      ['a jump is deleted', ['-t', 'filter', '-F', 'FORWARD'], /the jump from FORWARD/],
      ['a rule is put into a chain of ours', ['-t', 'filter', '-I', 'KUBE-FORWARD', '-j', 'DROP'], /KUBE-FORWARD/],
      // The same effect for more packets: only its match is gone.
      ['a match is removed', ['-t', 'nat', '-R', 'KUBE-POSTROUTING', '1', '-j', 'RETURN'], /KUBE-POSTROUTING/],
      [
        'a state of conntrack is another',
        ['-R', 'KUBE-FORWARD', '1', '-m', 'conntrack', '--ctstate', 'NEW', '-j', 'DROP'],
        /KUBE-FORWARD/,
      ],
      [
        'another bit is marked',
        ['-t', 'nat', '-R', 'KUBE-MARK-MASQ', '1', '-j', 'MARK', '--set-xmark', '0x8000/0x8000'],
        /KUBE-MARK-MASQ/,
      ],
    ])('%s: noticed, and repaired by a full sync', async (_, command, reason) => {
      const backend = await start({ flavour })
      const services = view([web, sticky, empty])
      await backend.sync(services, fullSync)
      const before = saved()
      run(program, command)
      await vi.waitFor(() => expect(reasons[0]).toMatch(reason), { timeout: 90_000 })
      await backend.sync(services, fullSync)
      expect(saved()).toEqual(before)
      reasons.length = 0
      await severalChecks()
      expect(reasons).toEqual([])
    })

    test.each<[string, RegExp, (rule: string) => string]>([
      [
        'an endpoint is drawn more often',
        /^KUBE-SVC-.*statistic/,
        (rule) => rule.replace(/--probability \S+/, '--probability 0.9'),
      ],
      [
        'an endpoint has another address',
        /^KUBE-SEP-.*DNAT/,
        (rule) => rule.replace(/10\.244\.\d+\.\d+:/, '10.9.9.9:'),
      ],
      [
        'clients are remembered for another time',
        /^KUBE-SVC-.*recent/,
        (rule) => rule.replace('--seconds 600', '--seconds 6'),
      ],
    ])('%s: noticed', async (_, pattern, changed) => {
      const backend = await start({ flavour, ipv6: false })
      await backend.sync(view([sticky]), fullSync)
      const rules = saved().flatMap((line) => (line.startsWith('-A ') ? line.slice(3) : []))
      const rule = rules.find((line) => pattern.test(line)) ?? ''
      const chain = rule.split(' ')[0] ?? ''
      const [listed] = run(program, ['-t', 'nat', '-S', chain])
        .split('\n')
        .flatMap((line, number) => (line.slice(3) === rule ? number : []))
      run(
        `${program}-restore`,
        ['--noflush'],
        `*nat\n-R ${changed(rule).replace(chain, `${chain} ${listed}`)}\nCOMMIT\n`,
      )
      await vi.waitFor(() => expect(reasons[0]).toContain(chain), { timeout: 90_000 })
    })

    test('clean-up leaves nothing of ours, and everything of others', async () => {
      run(`${program}-restore`, ['--noflush'], foreign)
      const before = [saved(), saved('6')]
      const backend = await start({ flavour })
      await backend.sync(view([web, sticky, empty, whole]), fullSync)
      for (const line of before[0] ?? []) expect(saved()).toContain(line)
      await backend.cleanup()
      expect([saved(), saved('6')]).toEqual([before[0], saved('6').filter((line) => !/KUBE|KPNG/.test(line))])
    })

    test('a chain of ours that rules of others use stays when we go', async () => {
      const backend = await start({ flavour })
      await backend.sync(view([web]), fullSync)
      run(program, ['-t', 'nat', '-A', 'POSTROUTING', '-s', '10.9.0.0/16', '-j', 'KUBE-MARK-MASQ'])
      await backend.cleanup()
      expect(saved().filter((line) => /KUBE|KPNG/.test(line))).toEqual([
        '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
        '-A POSTROUTING -s 10.9.0.0/16 -j KUBE-MARK-MASQ',
        ':KUBE-MARK-MASQ - ',
      ])
      run(program, ['-t', 'nat', '-F', 'POSTROUTING'])
    })

    test('a specialised proxier has chains of its own beside the main one', async () => {
      const main = await start({ flavour })
      await main.sync(view([web]), fullSync)
      const before = saved()
      const other = await start({ flavour, name: 'edge' })
      await other.sync(view([sticky]), fullSync)
      expect(saved().some((line) => line.startsWith('-A KPNG-EDGE-SVC-'))).toBe(true)
      await other.cleanup()
      expect(saved()).toEqual(before)
    })

    test('a second kpng of the same name does not start', async () => {
      await start({ flavour })
      await expect(start({ flavour })).rejects.toThrow(/in use on this node by kpng \(pid \d+\)/)
    })

    test('what the kernel holds is read back', async () => {
      const backend = await start({ flavour })
      await backend.sync(view([web, sticky, empty, whole]), fullSync)
      const at = { family: 'IPv4', protocol: 'tcp', port: 80 } as const
      expect(await backend.held?.({ ...at, kind: 'loadBalancerIP', address: '192.0.2.1' })).toEqual({
        inside: ['10.244.1.1:8080', '10.244.2.1:8080'],
        outside: ['10.244.1.1:8080'],
        otherwise: 'refuse',
      })
      expect(await backend.held?.({ ...at, kind: 'nodePort', address: '', port: 30080 })).toMatchObject({
        outside: ['10.244.1.1:8080'],
      })
      expect(await backend.held?.({ ...at, kind: 'clusterIP', address: '10.96.0.2' })).toMatchObject({
        inside: ['10.244.1.1:8080', '10.244.1.2:8080', '10.244.1.3:8080'],
        sessionAffinity: [],
      })
      expect(await backend.held?.({ ...at, kind: 'clusterIP', address: '10.96.0.3' })).toMatchObject({ inside: [] })
      expect(
        await backend.held?.({ family: 'IPv4', kind: 'externalIP', address: '198.51.100.9', protocol: 'any', port: 0 }),
      ).toMatchObject({ inside: ['10.244.1.1', '10.244.1.2', '10.244.1.3'] })
      expect(await backend.held?.({ ...at, kind: 'clusterIP', address: '10.96.0.77' })).toBeUndefined()
      const six = { ...at, family: 'IPv6', kind: 'clusterIP', address: 'fd00:96::1' } as const
      expect(await backend.held?.(six)).toMatchObject({ inside: ['[fd00:244::1]:8080', '[fd00:244:2::1]:8080'] })
    })
  })

  test.each(['nft', 'legacy'] as const)(
    'packets to node ports on loopback addresses and health checks: %s',
    async (flavour) => {
      run('ip', ['link', 'set', 'lo', 'up'])
      const guards: string[] = []
      const onSysctlChanged = (path: string) => {
        guards.push(`${path} ${run(`iptables-${flavour}`, ['-S', 'KUBE-NODEPORTS']).includes('-d 127.0.0.0/8')}`)
      }
      writeFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', '0')
      const backend = await start({ flavour, localhostNodePorts: true, nodePortAddresses: ['all'], onSysctlChanged })
      const checked = { ...web, healthCheckNodePort: 32_000, ports: [tcp(80, { nodePort: 30080 })] }
      const services = view([checked])
      await backend.sync(services, fullSync)
      // Loopback addresses are routed once the rule is there that keeps other machines out.
      expect(guards).toEqual(['proc/sys/net/ipv4/conf/all/route_localnet true'])
      expect(readFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', 'utf8')).toBe('1\n')
      expect(run(`iptables-${flavour}`, ['-S', 'KUBE-NODEPORTS'])).toContain('--dport 32000 -j ACCEPT')
      expect(run(`iptables-${flavour}`, ['-S', 'KUBE-FORWARD'])).toContain('ct_state_invalid_dropped_pkts -j DROP')
      const counts = async () => (await backend.observations?.packets?.())?.localhostNodePortsAccepted
      expect(await counts()).toBe(0)
      // Nobody answers; the first packet is enough.
      await new Promise<void>((resolve) => {
        const socket = connect({ host: '127.0.0.1', port: 30080, timeout: 200 })
        for (const event of ['error', 'timeout', 'connect']) socket.on(event, () => resolve(void socket.destroy()))
      })
      await expect.poll(counts).toBeGreaterThan(0)
      await backend.sync(services, change(services, 'web', { ...checked, healthCheckNodePort: 32_001 }))
      expect(run(`iptables-${flavour}`, ['-S', 'KUBE-NODEPORTS'])).toMatch(/--dport 32001 -j ACCEPT/)
      expect(run(`iptables-${flavour}`, ['-S', 'KUBE-NODEPORTS'])).not.toContain('32000')
      await backend.cleanup()
      expect(await readPacketCounter('localhost_nps_accepted_pkts')).toBeUndefined()
    },
  )

  test('after a switch to the other flavour, the old chains go once the new ones are there', async () => {
    const before = await start({ flavour: 'nft' })
    await before.sync(view([web]), fullSync)
    await before.close()
    await (await start({ flavour: 'legacy' })).sync(view([web]), fullSync)
    expect(run('iptables-legacy-save', [])).toContain('default/web')
    expect(run('iptables-nft-save', [])).not.toMatch(/KUBE|KPNG/)
  })

  test('auto takes the flavour that the kubelet uses', async () => {
    run('iptables-legacy-restore', ['--noflush'], foreign)
    await (await start({})).sync(view([web]), fullSync)
    expect(run('iptables-legacy-save', [])).toContain('default/web')
    expect(run('iptables-nft-save', [])).not.toContain('default/web')
  })
})
