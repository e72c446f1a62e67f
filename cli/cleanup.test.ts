import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canReadTables, type Machine, NetworkNamespace, whySkipped } from './testing/network-namespace.js'

// `kpng cleanup` on the real kernel: what goes, what stays, and that it never says "done" of what it could not do.

const namespace = new NetworkNamespace()
const inside = (program: string, args: string, input?: string) => namespace.inside(program, args.split(' '), input)
const kpng = (args: string, machine?: Machine) =>
  namespace.kpng(['cleanup', ...args.split(' ').filter((word) => word !== '')], machine)

const why = whySkipped('kpng cleanup on the real kernel', ['nft', 'iptables', 'setpriv'])

describe.skipIf(why !== undefined)('kpng cleanup', () => {
  beforeEach(() => namespace.add())
  afterEach(() => namespace.remove())

  const tables = () => inside('nft', 'list tables')

  test.each([
    ['--backend nft', 'add table ip kpng', /kpng cannot list the nftables tables: EPERM.*CAP_NET_ADMIN/],
    ['--backend ipvs', 'add table ip kpng-ipvs', /ipvs: .*not permitted/],
    ['--backend userspacelin', 'add table ip kpng-userspace', /userspacelin: .*CAP_NET_ADMIN/],
    ['--backend userspacelin-iptables', 'add table ip mine', /userspacelin-iptables: .*CAP_NET_ADMIN/],
    ['', 'add table ip6 kpng', /nft: .*userspacelin: .*userspacelin-iptables: /],
    ['--kube-proxy', 'add table ip kube-proxy', /kube-proxy: .*root or with the capability CAP_NET_ADMIN/],
  ])('%s without rights is a failure, and what is there stays', (args, add, sentence) => {
    inside('nft', '-f -', `${add}\n`)
    const before = tables()
    const { status, stderr } = kpng(args, 'without rights')
    expect(stderr.replaceAll('\n', ' ')).toMatch(sentence)
    expect(stderr).not.toMatch(/Cleaned up|Found nothing/)
    expect(status).toBe(1)
    expect(tables()).toBe(before)
  })

  test('where iptables is not installed, as in the image, the rest is cleaned, and the log says so', () => {
    inside('nft', '-f -', 'add table ip kpng\nadd table ip6 kpng-userspace\nadd table ip mine\n')
    const { status, stderr } = kpng('', { programs: ['nft'] })
    expect(stderr).toMatch(/Skipped.*backend="userspacelin-iptables".*iptables is not installed/)
    expect(stderr).toMatch(/Cleaned up backend="nft"/)
    expect(status).toBe(0)
    expect(tables()).toBe('table ip mine\n')
  })

  test('tables of the ipvs backend go, and no others', () => {
    inside(
      'nft',
      '-f -',
      'add table ip kpng-ipvs\nadd table ip6 kpng-ipvs-edge\nadd table ip kpng-ipvsadm\nadd table ip kpng\n',
    )
    const { status, stderr } = kpng('--backend ipvs')
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringMatching(/Cleaned up backend="ipvs"/) })
    expect(tables()).toBe('table ip kpng-ipvsadm\ntable ip kpng\n')
  })

  test('a backend whose program is not installed is a failure', () => {
    const { status, stderr } = kpng('--backend userspacelin-iptables', { programs: [] })
    expect(stderr).toMatch(/iptables is not installed/)
    expect(status).toBe(1)
  })

  test('where no program is installed, the tables of the nftables backend go, and the log says what was skipped', () => {
    inside('nft', '-f -', 'add table ip kpng\nadd table ip6 kpng-special\nadd table ip kpng-ipvs\nadd table ip mine\n')
    const { status, stderr } = kpng('', { programs: [] })
    for (const backend of ['iptables', 'ipvs', 'userspacelin-iptables']) {
      expect(stderr).toMatch(new RegExp(`Skipped.*backend="${backend}"`))
    }
    for (const backend of ['nft', 'userspacelin']) {
      expect(stderr).toMatch(new RegExp(`Cleaned up backend="${backend}"`))
    }
    expect(status).toBe(0)
    expect(tables()).toBe('table ip kpng-ipvs\ntable ip mine\n')
  })

  const closeWait = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait'
  if (!existsSync(closeWait)) console.warn('Skipped: this kernel has no conntrack, so no sysctls of it are restored.')

  describe.skipIf(!existsSync(closeWait))('sysctls', () => {
    const value = () => inside('cat', closeWait).trim()
    const initOnly = () =>
      namespace.kpng([
        ...['local', 'to-nft', '--init-only', '--oom-score-adj', '0', '--conntrack-max-per-core', '0'],
        ...['--conntrack-tcp-timeout-established', '0s', '--conntrack-tcp-timeout-close-wait', '91s'],
      ])

    test('that still have the value of kpng are restored', () => {
      const before = value()
      expect(initOnly()).toMatchObject({ status: 0 })
      expect(value()).toBe('91')
      expect(kpng('--backend userspacelin')).toMatchObject({ status: 0 })
      expect(value()).toBe('91')
      // Before the rules go: loopback addresses must not be routed without the rule that keeps other machines out.
      expect(kpng('')).toMatchObject({
        status: 0,
        stderr: expect.stringMatching(/Restored a kernel setting[\s\S]*Cleaned up/),
      })
      expect(value()).toBe(before)
    })

    test('stay while a kpng with another backend runs, as after a switch', () => {
      initOnly()
      const script = 'exec -a kpng node -e "setTimeout(() => {}, 60000)" to-iptables > /dev/null 2>&1 & echo $!'
      const pid = Number(namespace.inside('bash', ['-c', script]))
      try {
        expect(kpng('--backend nft')).toMatchObject({ status: 0, stderr: expect.stringContaining(`pid=${pid}`) })
        expect(value()).toBe('91')
      } finally {
        process.kill(pid)
      }
    })

    test('that were changed since stay', () => {
      initOnly()
      inside('tee', closeWait, '92')
      expect(kpng('--backend nft')).toMatchObject({
        status: 0,
        stderr: expect.stringContaining('Left a kernel setting'),
      })
      expect(value()).toBe('92')
    })
  })

  describe('with iptables', () => {
    const iptables = ['iptables', 'ip6tables'].filter(canReadTables)
    const kubeProxys = [
      ':KUBE-PORTALS-CONTAINER - [0:0]',
      ':KUBE-PORTALS-HOST - [0:0]',
      ':KUBE-NODEPORT-CONTAINER - [0:0]',
      ':KUBE-NODEPORT-HOST - [0:0]',
      '-A PREROUTING -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-CONTAINER',
      '-A PREROUTING -m addrtype --dst-type LOCAL -m comment --comment "handle service NodePorts; NOTE: this must be the last rule in the chain" -j KUBE-NODEPORT-CONTAINER',
      '-A OUTPUT -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-HOST',
      '-A OUTPUT -m addrtype --dst-type LOCAL -m comment --comment "handle service NodePorts; NOTE: this must be the last rule in the chain" -j KUBE-NODEPORT-HOST',
      '-A KUBE-PORTALS-CONTAINER -p tcp -m tcp --dport 443 -j REDIRECT --to-ports 40000',
    ]
    const kubeProxysFilter = [':KUBE-NODEPORT-NON-LOCAL - [0:0]', '-A INPUT -j KUBE-NODEPORT-NON-LOCAL']
    const kpngs = [
      ...['PORTALS-CONTAINER', 'PORTALS-HOST', 'NODEPORT-CONTAINER', 'NODEPORT-HOST'].map((c) => `:KPNG-${c} - [0:0]`),
      '-I PREROUTING -m comment --comment "kpng: service addresses, before the node ports" -j KPNG-PORTALS-CONTAINER',
      '-A OUTPUT -m addrtype --dst-type LOCAL -m comment --comment "kpng: node ports, after the service addresses" -j KPNG-NODEPORT-HOST',
      '-A KPNG-PORTALS-CONTAINER -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 40001',
    ]
    const kpngsFilter = [
      ':KPNG-PORTALS-FILTER - [0:0]',
      '-I FORWARD -m comment --comment "kpng: services without endpoints" -j KPNG-PORTALS-FILTER',
    ]
    const restore = (nat: readonly string[], filter: readonly string[]) => {
      const text = ['*nat', ...nat, 'COMMIT', '*filter', ...filter, 'COMMIT', ''].join('\n')
      for (const program of iptables) inside(`${program}-restore`, '--noflush', text)
    }
    const rulesOf = (owner: RegExp) =>
      iptables.flatMap((program) =>
        inside(`${program}-save`, '-t nat')
          .concat(inside(`${program}-save`, '-t filter'))
          .split('\n')
          .filter((line) => owner.test(line))
          .map((line) => line.replace(/\[\d+:\d+\]/, '[0:0]')),
      )

    test("takes kpng's userspace chains and leaves those of kube-proxy's userspace mode", () => {
      restore(kubeProxys, kubeProxysFilter)
      const before = rulesOf(/KUBE-/)
      restore(kpngs, kpngsFilter)
      expect(rulesOf(/KPNG-/)).not.toEqual([])
      expect(kpng('')).toMatchObject({ status: 0 })
      expect(rulesOf(/KPNG-/)).toEqual([])
      expect(rulesOf(/KUBE-/)).toEqual(before)
    })

    test("--kube-proxy takes the chains of its userspace mode and leaves kpng's", () => {
      restore(kpngs, kpngsFilter)
      const before = rulesOf(/KPNG-/)
      restore(kubeProxys, kubeProxysFilter)
      expect(rulesOf(/KUBE-/)).not.toEqual([])
      expect(kpng('--kube-proxy')).toMatchObject({ status: 0 })
      expect(rulesOf(/KUBE-/)).toEqual([])
      expect(rulesOf(/KPNG-/)).toEqual(before)
    })

    test("a chain of kpng's that somebody else's rule leads to cannot go, and that is said", () => {
      restore([...kpngs, ':MINE - [0:0]', '-A MINE -j KPNG-PORTALS-HOST'], kpngsFilter)
      const { status, stderr } = kpng('--backend userspacelin-iptables')
      expect(stderr).toMatch(/-X KPNG-PORTALS-HOST/)
      expect(status).toBe(1)
    })
  })
})
