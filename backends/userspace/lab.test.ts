import { setTimeout as pause } from 'node:timers/promises'
import { whySkipped } from '@kpng/linux/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ProxySettings } from './testing/agent.js'
import { TCP, UDP } from './testing/cluster.js'
import { type Lab, makeLab, podIps, secondSubnet } from './testing/lab.js'
import { moverOptions } from './testing/splice-script.js'

// The traffic that the issue of this backend lists, on a real kernel, for both ways to make Linux portals.

const here = { internal: true, external: true, cluster: true }
const elsewhere = { internal: true, external: false, cluster: true }
const anywhere = { v4: true, v6: true }

// One mover with each capture, because they do not know of each other.
const patience = { timeout: 90_000 }

describe.each([
  ['nft', 'splice'],
  ['iptables', 'portable'],
] as const)('Linux portals by %s, TCP by %s', (capture, mover) => {
  const programs = capture === 'nft' ? ['nft'] : ['iptables', 'ip6tables']
  const missing = whySkipped(`userspace portals by ${capture}`, ...programs)
  if (missing !== undefined) {
    it.skip(`skipped: ${missing}`, () => {})
    return
  }

  let lab: Lab
  let proxy: Pick<ProxySettings, 'mover' | 'spliceScript'>
  beforeAll(async () => {
    const { spliceScript: script } = await moverOptions(mover)
    proxy = { mover, ...(script ? { spliceScript: script.href } : {}) }
    lab = await makeLab()
    await lab.node.startProxy({ ...proxy, capture, udpIdleTimeoutMs: 2000, nodePortAddresses: ['all'] })
    await lab.node.setNode({ addresses: ['10.70.0.1', 'fd70::1'], podCidrs: ['10.244.1.0/24', 'fd44::/16'] })
    for (const pod of ['pod-a', 'pod-b', 'pod-c'] as const) {
      for (const ip of [podIps[pod].v4, podIps[pod].v6]) {
        await lab[pod].serveTcp(ip, 8080, pod)
        await lab[pod].serveUdp(ip, 8053, pod)
      }
    }
  })
  afterAll(() => lab?.remove())

  const a = ['10.244.1.2'] as [string]
  const b = ['10.244.1.6'] as [string]
  const c = ['10.244.1.10'] as [string]
  const port = { name: 'http', protocol: TCP, port: 80, targetPort: 8080, servedFamilies: anywhere }
  const answersOf = async (machine: 'client' | 'node' | 'pod-c', ip: string, number: number, times = 4) => {
    const answers = new Set<string>()
    for (let i = 0; i < times; i++) answers.add((await lab[machine].outcome(ip, number)).split(' ')[0] as string)
    return [...answers].sort()
  }

  it('cluster IP, TCP, both families: from a client, a pod and the node itself', async () => {
    const dual = { clusterIps: { v4: ['10.96.0.10'], v6: ['fd96::10'] } }
    await lab.node.setService('web', { ips: dual, ports: [port] }, [a, b, ['fd44:1::2'], ['fd44:2::2']])
    for (const machine of ['client', 'node', 'pod-c'] as const) {
      for (const ip of ['10.96.0.10', 'fd96::10']) {
        expect([machine, ip, await answersOf(machine, ip, 80)]).toEqual([machine, ip, ['pod-a', 'pod-b']])
      }
    }
  })

  it('cluster IP, UDP, both families, and the session moves at once when its endpoint goes', async () => {
    const udp = { ...port, name: 'dns', protocol: UDP, port: 53, targetPort: 8053 }
    const ips = { clusterIps: { v4: ['10.96.0.11'], v6: ['fd96::11'] } }
    const set = (...endpoints: [string][]) => lab.node.setService('dns', { ips, ports: [udp] }, endpoints)
    await set(a, ['fd44:1::2'])
    const cases = [
      ['client', '10.70.0.2', '10.96.0.11'],
      ['client', 'fd70::2', 'fd96::11'],
      ['pod-c', '10.244.1.10', '10.96.0.11'],
      ['pod-c', 'fd44:3::2', 'fd96::11'],
      ['node', '10.70.0.1', '10.96.0.11'],
      ['node', 'fd70::1', 'fd96::11'],
    ] as const
    const askAll = async (text: string) => {
      const answers = []
      for (const [machine, local, ip] of cases) answers.push(await lab[machine].udpAsk(`${local}`, local, ip, 53, text))
      return answers
    }
    expect(await askAll('one')).toEqual(cases.map(() => 'pod-a:one'))
    await set(b, ['fd44:2::2'])
    expect(await askAll('two')).toEqual(cases.map(() => 'pod-b:two'))
    // Without endpoints and back: the same clients, from the same ports.
    await set()
    expect(await askAll('three')).toEqual(cases.map(() => 'silence'))
    await set(c, ['fd44:3::2'])
    expect(await askAll('four')).toEqual(cases.map(() => 'pod-c:four'))
  })

  it('UDP answers come from the address that was asked, whichever of its interface’s subnets it is in', async () => {
    const udp = { ...port, name: 'dns', protocol: UDP, port: 53, targetPort: 8053, nodePort: 30_053 }
    const ips = {
      clusterIps: { v4: ['10.96.0.26'], v6: ['fd96::26'] },
      externalIps: { v4: ['198.51.100.26'], v6: ['fdee::26'] },
    }
    await lab.node.setService('two-subnets', { ips, ports: [udp] }, [a, ['fd44:1::2']])
    const targets = {
      v4: [
        ['10.96.0.26', 53],
        ['198.51.100.26', 53],
        ['10.70.0.1', 30_053],
        [secondSubnet.v4, 30_053],
      ],
      v6: [
        ['fd96::26', 53],
        ['fdee::26', 53],
        ['fd70::1', 30_053],
        [secondSubnet.v6, 30_053],
      ],
    } as const
    const from = {
      client: { v4: '10.70.0.2', v6: 'fd70::2' },
      'pod-c': podIps['pod-c'],
      node: { v4: '0.0.0.0', v6: '::' },
    } as const
    const loopback = { v4: ['127.0.0.1', 30_053], v6: ['::1', 30_053] } as const
    for (const machine of ['client', 'pod-c', 'node'] as const) {
      for (const family of ['v4', 'v6'] as const) {
        for (const [ip, number] of [...targets[family], ...(machine === 'node' ? [loopback[family]] : [])]) {
          const answer = await lab[machine].udpAsk(`${ip}|${number}`, from[machine][family], ip, number, 'x')
          expect([machine, ip, number, answer]).toEqual([machine, ip, number, 'pod-a:x'])
        }
      }
    }
  })

  it('node port: from outside, from a pod and from the node, on its addresses and localhost', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.12'], v6: ['fd96::12'] } }
    await lab.node.setService('np', { type: 'NodePort', ips, ports: [{ ...port, nodePort: 30080 }] }, [
      a,
      ['fd44:1::2'],
    ])
    for (const ip of ['10.70.0.1', 'fd70::1']) expect(await lab.client.outcome(ip, 30080)).toMatch(/^pod-a /)
    expect(await lab['pod-c'].outcome('10.244.1.9', 30080)).toMatch(/^pod-a /)
    for (const ip of ['10.70.0.1', '127.0.0.1', 'fd70::1']) expect(await lab.node.outcome(ip, 30080)).toMatch(/^pod-a /)
    // Another port of the node is not ours.
    expect(await lab.client.outcome('10.70.0.1', 30081)).toBe('ECONNREFUSED')
  })

  it('external IP, and load-balancer IP with source ranges', async () => {
    const ips = {
      clusterIps: { v4: ['10.96.0.13'] },
      externalIps: { v4: ['198.51.100.13'] },
      loadBalancerIps: { v4: ['198.51.100.113'] },
    }
    const set = (sourceRanges: string[]) =>
      lab.node.setService('lb', { ips, ports: [port], ipFilters: [{ sourceRanges }] }, [a])
    await set(['10.70.0.0/24', '10.70.0.0/28'])
    expect(await lab.client.outcome('198.51.100.13', 80)).toMatch(/^pod-a /)
    expect(await lab.client.outcome('198.51.100.113', 80)).toMatch(/^pod-a /)
    await set(['192.0.2.0/24'])
    expect(await lab.client.outcome('198.51.100.13', 80)).toMatch(/^pod-a /)
    expect(await lab.client.outcome('10.96.0.13', 80)).toMatch(/^pod-a /)
    expect(await lab.client.outcome('198.51.100.113', 80, 700)).toBe(capture === 'nft' ? 'timeout' : 'ECONNRESET')
    await set([' 0.0.0.0/0 '])
    expect(await lab.client.outcome('198.51.100.113', 80)).toMatch(/^pod-a /)
  })

  it('no endpoints anywhere: refused, for every kind of address and client', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.14'], v6: ['fd96::14'] }, externalIps: { v4: ['198.51.100.14'] } }
    const none = { ...port, nodePort: 30014, servedFamilies: { v4: false, v6: false } }
    await lab.node.setService('empty', { ips, ports: [none] }, [])
    const targets = [
      ['10.96.0.14', 80],
      ['fd96::14', 80],
      ['198.51.100.14', 80],
      ['10.70.0.1', 30014],
    ] as const
    for (const machine of ['client', 'node', 'pod-c'] as const) {
      for (const [ip, number] of targets) {
        expect([machine, ip, await lab[machine].outcome(ip, number)]).toEqual([machine, ip, 'ECONNREFUSED'])
      }
    }
  })

  it('policy Local without a local endpoint: dropped outside, served inside; with one: only that one', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.15'] }, loadBalancerIps: { v4: ['198.51.100.15'] } }
    const local = { ips, ports: [{ ...port, nodePort: 30015 }], externalTrafficToLocal: true }
    await lab.node.setService('local', local, [['10.244.1.2', undefined, { scopes: elsewhere }]])
    for (const [ip, number] of [
      ['198.51.100.15', 80],
      ['10.70.0.1', 30015],
    ] as const) {
      // By iptables both go to the proxy port, since some are served; the proxy resets the others.
      expect(await lab.client.outcome(ip, number, 700)).toBe(capture === 'nft' ? 'timeout' : 'ECONNRESET')
      expect(await lab['pod-c'].outcome(ip, number)).toMatch(/^pod-a /)
      expect(await lab.node.outcome(ip, number)).toMatch(/^pod-a /)
    }
    expect(await lab.client.outcome('10.96.0.15', 80)).toMatch(/^pod-a /)
    const both: [string, undefined, { scopes: typeof here }][] = [
      ['10.244.1.2', undefined, { scopes: elsewhere }],
      ['10.244.1.6', undefined, { scopes: here }],
    ]
    await lab.node.setService('local', local, both)
    expect(await answersOf('client', '198.51.100.15', 80)).toEqual(['pod-b'])
    expect(await answersOf('pod-c', '198.51.100.15', 80)).toEqual(['pod-a', 'pod-b'])
  })

  it('internal policy Local without a local endpoint: dropped', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.16'] } }
    await lab.node.setService('inner', { ips, ports: [port], internalTrafficToLocal: true }, [
      ['10.244.1.2', undefined, { scopes: { internal: false, external: true, cluster: true } }],
    ])
    expect(await lab.client.outcome('10.96.0.16', 80, 700)).toBe('timeout')
    expect(await lab['pod-c'].outcome('10.96.0.16', 80, 700)).toBe('timeout')
  })

  it('affinity keeps a client, lets others be spread, and ends with its timeout', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.17'] } }
    const sessionAffinity = { case: 'clientIp' as const, value: { timeoutSeconds: 1 } }
    await lab.node.setService('sticky', { ips, ports: [port], sessionAffinity }, [a, b, c])
    // All six within the second that a client is remembered for.
    await expect.poll(() => answersOf('client', '10.96.0.17', 80, 6), patience).toHaveLength(1)
    const later = new Set<string>()
    for (let i = 0; i < 3; i++) {
      await pause(1100)
      later.add((await lab.client.outcome('10.96.0.17', 80)).split(' ')[0] as string)
    }
    expect(later.size).toBe(3)
    // Its endpoint goes: the client moves at once.
    const [current] = await answersOf('client', '10.96.0.17', 80, 1)
    const others = (
      [
        ['pod-a', a],
        ['pod-b', b],
        ['pod-c', c],
      ] as const
    ).filter(([name]) => name !== current)
    await lab.node.setService(
      'sticky',
      { ips, ports: [port], sessionAffinity },
      others.map(([, address]) => address),
    )
    expect(await answersOf('client', '10.96.0.17', 80, 3)).not.toContain(current)
  })

  it('an endpoint that never answers: the next one has the client', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.18'] } }
    // On the pod's network, but nobody is there.
    await lab.node.setService('hole', { ips, ports: [port] }, [['10.244.1.3'], a])
    for (let i = 0; i < 4; i++) expect(await lab.client.outcome('10.96.0.18', 80)).toMatch(/^pod-a /)
  })

  it('the proxy port itself is no way in', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.19'] } }
    await lab.node.setService('inner-only', { ips, ports: [port] }, [a])
    const rules = await lab.node.run(
      capture === 'nft' ? 'nft' : 'iptables-save',
      capture === 'nft' ? ['list', 'ruleset'] : [],
    )
    const [, proxyPort] = /10\.96\.0\.19(?: \. tcp \. 80 : |.*--to-ports )(\d+)/.exec(rules) ?? []
    expect(Number(proxyPort)).toBeGreaterThan(0)
    expect(await lab.client.outcome('10.70.0.1', Number(proxyPort))).toBe('ECONNREFUSED')
    expect(await lab.client.outcome('10.96.0.19', 80)).toMatch(/^pod-a /)
  })

  const connections = capture === 'nft' ? 10_000 : 2000
  it(`${connections} new connections while endpoints come and go: none fails`, { timeout: 300_000 }, async () => {
    const ips = { clusterIps: { v4: ['10.96.0.20'] } }
    const set = (...endpoints: [string][]) => lab.node.setService('busy', { ips, ports: [port] }, endpoints)
    await set(a, b, c)
    let done = false
    const result = lab.client.load({ ip: '10.96.0.20', port: 80, connections, parallel: 16 }).finally(() => {
      done = true
    })
    const sets = [[a], [a, c], [a, b, c]]
    let changes = 0
    while (!done) {
      await set(...(sets[changes++ % sets.length] as [string][]))
      await pause(50)
      // Some time after it is out of the service the pod ends, as pods do, and with it none of its connections.
      if (changes % sets.length === 1) {
        await expect.poll(() => lab.node.run('ss', ['-Htn', 'dst', '10.244.1.6']), { timeout: 90_000 }).toBe('')
        await lab['pod-b'].stopServing('10.244.1.6', 8080, 'tcp')
      }
      if (changes % sets.length === 2) await lab['pod-b'].serveTcp('10.244.1.6', 8080, 'pod-b')
      await pause(50)
    }
    await lab['pod-b'].serveTcp('10.244.1.6', 8080, 'pod-b').catch(() => {})
    const { outcomes } = await result
    expect(Object.keys(outcomes).sort()).toEqual(['pod-a', 'pod-b', 'pod-c'])
    expect(Object.values(outcomes).reduce((sum, n) => sum + n)).toBe(connections)
    expect(changes).toBeGreaterThan(5)
  })

  it('a long download is untouched while its own and other services change', async () => {
    const ips = { clusterIps: { v4: ['10.96.0.21'] } }
    await lab.node.setService('long', { ips, ports: [port] }, [a])
    const download = lab.client.load({ ip: '10.96.0.21', port: 80, downloadMs: 2500 })
    await pause(300)
    const other = { clusterIps: { v4: ['10.96.0.22'] } }
    for (let i = 0; i < 10; i++) {
      await lab.node.setService('other', { ips: other, ports: [{ ...port, port: 81 + (i % 3) }] }, i % 2 ? [a] : [b])
      await lab.node.setService(
        'long',
        { ips, ports: [{ ...port, nodePort: i % 2 ? 30021 : 0 }] },
        i % 2 ? [a, b] : [a],
      )
      await pause(100)
    }
    await lab.node.setService('other', null)
    const { outcomes, bytes } = await download
    expect(outcomes).toEqual({})
    expect(bytes).toBeGreaterThan(500_000)
  })

  it('UDP goes on when the address that its proxy sockets had leaves the node', async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture, syncPeriodMs: 200 })
    await lab.node.setNode({ addresses: [secondSubnet.v4] })
    const udp = { ...port, name: 'dns', protocol: UDP, port: 53, targetPort: 8053 }
    await lab.node.setService('moving', { ips: { clusterIps: { v4: ['10.96.0.27'] } }, ports: [udp] }, [a])
    const ask = () => lab.client.udpAsk('moving', '10.70.0.2', '10.96.0.27', 53, 'x')
    expect(await ask()).toBe('pod-a:x')
    await lab.node.run('ip', ['addr', 'del', `${secondSubnet.v4}/24`, 'dev', secondSubnet.device])
    await expect.poll(ask, patience).toBe('pod-a:x')
  })

  it('portals that somebody removed come back', async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture, syncPeriodMs: 200 })
    await lab.node.setService('kept', { ips: { clusterIps: { v4: ['10.96.0.24'] } }, ports: [port] }, [a])
    expect(await lab.client.outcome('10.96.0.24', 80)).toMatch(/^pod-a /)
    await lab.node.run('nft', ['flush', 'ruleset'])
    await expect.poll(() => lab.client.outcome('10.96.0.24', 80), patience).toMatch(/^pod-a /)
  })

  it("node ports are served at the node's primary addresses unless something else is said", async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture })
    await lab.node.setNode({ addresses: ['10.70.0.1', 'fd70::1'] })
    const ips = { clusterIps: { v4: ['10.96.0.28'], v6: ['fd96::28'] } }
    await lab.node.setService('primary', { ips, ports: [{ ...port, nodePort: 30_028 }] }, [a, ['fd44:1::2']])
    for (const ip of ['10.70.0.1', 'fd70::1']) expect(await lab.client.outcome(ip, 30_028)).toMatch(/^pod-a /)
    for (const ip of ['10.244.1.1', secondSubnet.v6, '127.0.0.1', '::1']) {
      expect([ip, await lab.node.outcome(ip, 30_028)]).toEqual([ip, 'ECONNREFUSED'])
    }
  })

  it('proxy ports come from the range; when it is used up that portal alone waits', async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture, portRange: '20000-20001' })
    const ips = (last: number) => ({ clusterIps: { v4: [`10.96.1.${last}`] } })
    for (const last of [1, 2, 3]) await lab.node.setService(`s${last}`, { ips: ips(last), ports: [port] }, [a])
    expect(await lab.node.failures()).toEqual([
      ['10.96.1.3:80/tcp', expect.stringContaining('Every proxy port from 20000 to 20001 is used')],
    ])
    for (const last of [1, 2]) expect(await lab.client.outcome(`10.96.1.${last}`, 80)).toMatch(/^pod-a /)
    await lab.node.setService('s1', null)
    expect(await lab.node.failures()).toEqual([])
    expect(await lab.client.outcome('10.96.1.3', 80)).toMatch(/^pod-a /)
  })

  it('a proxy bound to one address is reached there', async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture, bindAddresses: ['10.70.0.1', 'fd70::1'] })
    const udp = { ...port, name: 'dns', protocol: UDP, port: 53, targetPort: 8053 }
    const ips = { clusterIps: { v4: ['10.96.0.25'], v6: ['fd96::25'] } }
    await lab.node.setService('bound', { ips, ports: [port, udp] }, [a, ['fd44:1::2']])
    for (const machine of ['client', 'node', 'pod-c'] as const) {
      for (const ip of ['10.96.0.25', 'fd96::25']) expect(await lab[machine].outcome(ip, 80)).toMatch(/^pod-a /)
    }
    expect(await lab['pod-c'].udpAsk('bound', '10.244.1.10', '10.96.0.25', 53, 'x')).toBe('pod-a:x')
  })

  it('a forwarded answer to a client whose port is a proxy port arrives', async () => {
    await lab.node.stopProxy()
    await lab.node.startProxy({ ...proxy, capture, portRange: '20053' })
    const udp = { ...port, name: 'dns', protocol: UDP, port: 53, targetPort: 8053 }
    await lab.client.serveUdp('10.70.0.2', 8053, 'client')
    for (const endpoints of [[a], []]) {
      await lab.node.setService('same-port', { ips: { clusterIps: { v4: ['10.96.0.27'] } }, ports: [udp] }, endpoints)
      expect(await lab['pod-c'].udpAsk('same-port', '10.244.1.10', '10.70.0.2', 8053, 'x', 20_053)).toBe('client:x')
    }
    // Who asks the proxy port itself has bypassed the Service.
    expect(await lab['pod-c'].udpAsk('direct', '10.244.1.10', '10.70.0.1', 20_053, 'x')).toBe('silence')
  })

  it('a specialised proxy works beside the main one, and each takes only its own away', async () => {
    await lab.node.stopProxy()
    const second = await lab.secondOnNode()
    const serve = (machine: typeof second, name: string, ip: string) =>
      machine.setService(name, { ips: { clusterIps: { v4: [ip] } }, ports: [port] }, [a])
    const answers = async () => [
      (await lab.client.outcome('10.96.0.28', 80)).split(' ')[0],
      (await lab.client.outcome('10.96.0.29', 80)).split(' ')[0],
    ]
    await lab.node.startProxy({ ...proxy, capture, table: 'kpng-userspace', syncPeriodMs: 100 })
    await second.startProxy({ ...proxy, capture, table: 'kpng-userspace-special', syncPeriodMs: 100 })
    await serve(lab.node, 'main', '10.96.0.28')
    await serve(second, 'special', '10.96.0.29')
    // Several periods, in which each looks whether somebody has changed its rules.
    await pause(500)
    expect(await answers()).toEqual(['pod-a', 'pod-a'])
    await second.stopProxy()
    expect((await answers())[0]).toBe('pod-a')
    await second.startProxy({ ...proxy, capture, table: 'kpng-userspace-special' })
    await serve(second, 'special', '10.96.0.29')
    await lab.node.stopProxy()
    expect((await answers())[1]).toBe('pod-a')
    // What `kpng cleanup` does takes everything away, whatever its name.
    await second.kill()
    await lab.node.cleanup({ capture })
    expect(await lab.node.run('nft', ['list', 'ruleset'])).not.toMatch(/kpng-userspace|KPNG-/)
    await lab.node.startProxy({ ...proxy, capture })
  })

  it('foreign rules stay, a crash is taken over and cleaned up', async () => {
    const list = async () => lab.node.run('nft', ['list', 'ruleset'])
    const ours = capture === 'nft' ? 'kpng-userspace' : 'KPNG-PORTALS'
    await lab.node.run('nft', ['add', 'table', 'inet', 'foreign'])
    await lab.node.setService('before', { ips: { clusterIps: { v4: ['10.96.1.2'] } }, ports: [port] }, [a])
    expect(await list()).toContain(ours)
    await lab.crashNode()
    expect(await list()).toContain(ours)
    await lab.node.startProxy({ ...proxy, capture })
    await lab.node.setService('again', { ips: { clusterIps: { v4: ['10.96.0.23'] } }, ports: [port] }, [a])
    expect(await lab.client.outcome('10.96.0.23', 80)).toMatch(/^pod-a /)
    expect(await list()).not.toContain('10.96.1.2')
    await lab.crashNode()
    await lab.node.cleanup({ capture })
    expect(await list()).not.toContain(ours)
    expect(await list()).toContain('foreign')
    // A proxy that ends in order leaves nothing either.
    await lab.node.startProxy({ ...proxy, capture })
    await lab.node.setService('again', { ips: { clusterIps: { v4: ['10.96.0.23'] } }, ports: [port] }, [a])
    await lab.node.stopProxy()
    expect(await list()).not.toContain(ours)
  })
})
