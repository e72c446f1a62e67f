import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canReadTables, type Machine, NetworkNamespace, whySkipped } from './testing/network-namespace.js'

// `kpng doctor` and `kpng bundle` on the real kernel, in a network namespace with planted faults.

const namespace = new NetworkNamespace()
const why = whySkipped('the doctor on the real kernel', ['iptables-nft', 'nft'])

interface Finding {
  readonly level: string
  readonly check: string
  readonly examples?: readonly string[]
}

/** What the doctor finds on the node. There is no cluster. */
function doctor(machine: Machine = 'whole', ...args: string[]) {
  const { stdout, status, stderr } = namespace.kpng(['doctor', '-o', 'json', ...args], machine)
  if (stdout === '') throw new Error(stderr)
  const { sections } = JSON.parse(stdout)
  const { findings, skipped } = sections[0] as { findings: Finding[]; skipped: { check: string; reason: string }[] }
  const of = (check: string) => findings.filter((finding) => finding.check === check)
  return { of, skipped, status, sections }
}

const kubeProxyRules = [
  '*nat',
  ':KUBE-SERVICES - [0:0]',
  ':KUBE-MARK-MASQ - [0:0]',
  ':KUBE-SVC-BBBBBBBBBBBBBBBB - [0:0]',
  ':MINE - [0:0]',
  '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
  '-A KUBE-SERVICES -p tcp -m tcp --dport 80 -j KUBE-SVC-BBBBBBBBBBBBBBBB',
  '-A MINE -p tcp -m tcp --dport 8080 -j KUBE-MARK-MASQ',
  'COMMIT',
  '',
].join('\n')

describe.skipIf(why !== undefined)('kpng doctor on a node', () => {
  beforeEach(() => namespace.add())
  afterEach(() => namespace.remove())

  test('finds nothing of kube-proxy where it never was', () => {
    const { of } = doctor()
    for (const check of ['nftables', 'two proxies', 'two kpng', "kube-proxy's leftovers", 'variants of iptables'])
      expect(of(check), check).toEqual([])
  })

  test('finds the sysctls of this namespace', () => {
    namespace.inside('sysctl', ['-w', 'net.ipv4.ip_forward=0', 'net.ipv4.conf.all.route_localnet=1'])
    const before = doctor()
    expect(before.of('forwarding')).toMatchObject([{ level: 'problem' }])
    expect(before.of('route_localnet')).toMatchObject([{ level: 'note' }])
    expect(before.status).toBe(1)
    namespace.inside('sysctl', ['-w', 'net.ipv4.ip_forward=1'])
    expect(
      doctor()
        .of('forwarding')
        .filter(({ level }) => level === 'problem'),
    ).toEqual([])
  })

  test("finds kube-proxy's rules in iptables and nftables, what depends on them, and changes nothing", () => {
    namespace.inside('iptables-nft-restore', ['--noflush'], kubeProxyRules)
    namespace.inside('nft', ['add', 'table', 'ip', 'kube-proxy'])
    const before = namespace.inside('nft', ['list', 'ruleset'])
    const { of, sections } = doctor('whole', '--migrate-from', 'iptables')
    const [leftovers] = of("kube-proxy's leftovers")
    expect(leftovers).toMatchObject({ level: 'warning' })
    expect(leftovers?.examples?.join('\n')).toMatch(/chains of mode iptables.*\n.*table of mode nftables/s)
    const migration: Finding[] = sections[2].findings
    expect(migration).toMatchObject([
      {
        check: 'firewall rules with KUBE- chains',
        examples: [expect.stringMatching(/^iptables-nft -A MINE .*-j KUBE-MARK-MASQ$/)],
      },
    ])
    expect(namespace.inside('nft', ['list', 'ruleset'])).toBe(before)
  })

  test.skipIf(!canReadTables('iptables-legacy'))('finds rules in both variants of iptables', () => {
    namespace.inside('iptables-nft', ['-t', 'nat', '-A', 'OUTPUT', '-j', 'RETURN'])
    expect(doctor().of('variants of iptables')).toEqual([])
    namespace.inside('iptables-legacy', ['-t', 'nat', '-A', 'OUTPUT', '-j', 'RETURN'])
    expect(doctor().of('variants of iptables')).toMatchObject([
      { level: 'warning', examples: ['iptables-nft: 1 rule', 'iptables-legacy: 1 rule'] },
    ])
  })

  test('without rights, what needs them is skipped aloud', () => {
    const { of, skipped } = doctor('without rights')
    expect(of('rights')).toMatchObject([{ level: 'warning' }])
    const reason = 'it needs root, or the capability CAP_NET_ADMIN'
    for (const check of ['nftables', "kube-proxy's leftovers", 'variants of iptables'])
      expect(skipped).toContainEqual({ check, reason })
  })

  test('the nftables backend needs no program', () => {
    expect(doctor({ programs: [] }).of('nftables')).toEqual([])
  })

  test('a bundle holds the tables of kpng and kube-proxy, and no other', () => {
    for (const table of ['kpng', 'kube-proxy', 'mine']) namespace.inside('nft', ['add', 'table', 'ip', table])
    const folder = mkdtempSync(join(tmpdir(), 'kpng-bundle-'))
    try {
      const file = join(folder, 'a.tar.gz')
      expect(namespace.kpng(['bundle', '-o', file]).status).toBe(0)
      execFileSync('tar', ['xzf', file, '-C', folder])
      const rules = join(folder, 'kpng-bundle', 'rules')
      expect(readFileSync(join(rules, 'nft-ip-kpng.txt'), 'utf8')).toContain('table ip kpng')
      expect(existsSync(join(rules, 'nft-ip-kube-proxy.txt'))).toBe(true)
      expect(existsSync(join(rules, 'nft-ip-mine.txt'))).toBe(false)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
