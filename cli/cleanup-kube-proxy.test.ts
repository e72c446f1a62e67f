import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NetworkNamespace, whySkipped } from './testing/network-namespace.js'

// The command as users run it, in a network namespace with rules of kube-proxy, kubelet, kpng and an administrator.

const namespace = new NetworkNamespace()
const inside = namespace.inside.bind(namespace)
const cleanUp = (...args: string[]) => namespace.kpng(['cleanup', ...args])

const why = whySkipped("removing kube-proxy's leftovers on the real kernel", ['iptables-nft', 'ip6tables-nft', 'nft'])

const foreign = {
  nat: [
    ':DOCKER - [0:0]',
    ':KUBE-KUBELET-CANARY - [0:0]',
    ':KPNG-PORTALS-CONTAINER - [0:0]',
    ':KPNG-NODEPORT-HOST - [0:0]',
    '-A PREROUTING -m comment --comment "not -j KUBE-SERVICES" -j DOCKER',
    '-A PREROUTING -j KPNG-PORTALS-CONTAINER',
    '-A OUTPUT -j KPNG-NODEPORT-HOST',
    '-A DOCKER -p tcp -m tcp --dport 8080 -j RETURN',
  ],
  filter: [
    ':KUBE-FIREWALL - [0:0]',
    '-A INPUT -j KUBE-FIREWALL',
    '-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT',
    '-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP',
  ],
  mangle: [':KUBE-IPTABLES-HINT - [0:0]', ':KUBE-KUBELET-CANARY - [0:0]'],
}

const proxied = {
  nat: [
    ...'KUBE-SERVICES KUBE-NODEPORTS KUBE-POSTROUTING KUBE-MARK-MASQ KUBE-PROXY-CANARY KUBE-SVC-BBBBBBBBBBBBBBBB'
      .concat(' KUBE-SEP-AAAAAAAAAAAAAAAA KUBE-EXT-BBBBBBBBBBBBBBBB KUBE-FW-BBBBBBBBBBBBBBBB KUBE-SVL-BBBBBBBBBBBBBBBB')
      .split(' ')
      .map((chain) => `:${chain} - [0:0]`),
    '-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    '-I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    '-I POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
    '-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000',
    '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
    '-A KUBE-POSTROUTING -j MASQUERADE --random-fully',
    '-A KUBE-SERVICES -p tcp -m tcp --dport 80 -m comment --comment "default/web cluster IP" -j KUBE-SVC-BBBBBBBBBBBBBBBB',
    '-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
    '-A KUBE-NODEPORTS -p tcp -m tcp --dport 30080 -j KUBE-EXT-BBBBBBBBBBBBBBBB',
    '-A KUBE-EXT-BBBBBBBBBBBBBBBB -j KUBE-MARK-MASQ',
    '-A KUBE-EXT-BBBBBBBBBBBBBBBB -j KUBE-SVC-BBBBBBBBBBBBBBBB',
    '-A KUBE-SVC-BBBBBBBBBBBBBBBB -m statistic --mode random --probability 0.5 -j KUBE-SEP-AAAAAAAAAAAAAAAA',
    '-A KUBE-SEP-AAAAAAAAAAAAAAAA -j KUBE-MARK-MASQ',
  ],
  filter: [
    ...'KUBE-SERVICES KUBE-EXTERNAL-SERVICES KUBE-NODEPORTS KUBE-FORWARD KUBE-PROXY-FIREWALL KUBE-PROXY-CANARY'
      .split(' ')
      .map((chain) => `:${chain} - [0:0]`),
    '-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
    '-I INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS',
    '-I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
    '-I OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
    '-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT',
  ],
  mangle: [':KUBE-PROXY-CANARY - [0:0]'],
}

const restore = (variant: string, tables: Readonly<Record<string, readonly string[]>>) =>
  inside(
    `${variant}-restore`,
    ['--noflush'],
    Object.entries(tables)
      .map(([name, lines]) => [`*${name}`, ...lines, 'COMMIT', ''].join('\n'))
      .join(''),
  )

const saved = (variant: string) =>
  inside(`${variant}-save`, [])
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/\[\d+:\d+\]/, '[0:0]'))

describe.skipIf(why !== undefined)('on the real kernel', () => {
  beforeEach(() => namespace.add())
  afterEach(() => namespace.remove())

  /** The variants whose tables can be written here. */
  const variants = () =>
    ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy'].filter((variant) => {
      const usable = namespace.works(variant, '-t', 'nat', '-S')
      if (!usable) console.warn(`Skipped: ${variant} does not work here.`)
      return usable
    })

  test("exactly kube-proxy's things go, at once in every variant", () => {
    const tried = variants()
    inside('nft', ['-f', '-'], 'add table ip kpng\nadd table inet mine\n')
    inside('ip', ['link', 'add', 'other0', 'type', 'bridge'])
    for (const variant of tried) restore(variant, foreign)
    const before = tried.map(saved)
    const tables = inside('nft', ['list', 'tables'])
    const links = inside('ip', ['-br', 'link', 'show']).replace(/ .*/g, '')

    for (const variant of tried) restore(variant, proxied)
    inside('nft', ['-f', '-'], ['ip', 'ip6', 'inet'].map((f) => `add table ${f} kube-proxy\n`).join(''))
    // The kernel may lack dummy interfaces; the name is what counts.
    inside('ip', ['link', 'add', 'kube-ipvs0', 'type', 'bridge'])
    const full = tried.map(saved)
    expect(full).not.toEqual(before)

    const dry = cleanUp('--kube-proxy', '--dry-run')
    expect(dry).toMatchObject({ status: 0, stdout: expect.stringContaining('nft delete table inet kube-proxy') })
    for (const variant of tried) expect(dry.stdout).toContain(`${variant}-restore --noflush`)
    expect(tried.map(saved)).toEqual(full)

    // Without the flag nothing of kube-proxy's goes. (Of kpng's own, the table and the chains would, and are needed below.)
    expect(cleanUp('--backend', 'userspacelin')).toMatchObject({ status: 0 })
    expect(tried.map(saved)).toEqual(full)

    const { status, stderr } = cleanUp('--kube-proxy')
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringMatching(/Removed.*kube-ipvs0/) })
    expect(tried.map(saved)).toEqual(before)
    expect(inside('nft', ['list', 'tables'])).toBe(tables)
    expect(inside('ip', ['-br', 'link', 'show']).replace(/ .*/g, '')).toBe(links)

    expect(cleanUp('--kube-proxy')).toMatchObject({ status: 0, stderr: expect.stringContaining('Found nothing') })
  })

  test('without the programs to look with, it fails and does not claim that nothing is there', () => {
    const { status, stderr } = namespace.kpng(['cleanup', '--kube-proxy'], { programs: [] })
    expect(stderr).toMatch(/Cannot look for rules of kube-proxy: .*nft.*ipset/)
    expect(status).toBe(1)
  })

  test('with nft alone, as in the image, its mode is cleaned and the others are named', () => {
    inside('nft', ['-f', '-'], 'add table ip kube-proxy\n')
    const { status, stderr } = namespace.kpng(['cleanup', '--kube-proxy'], { programs: ['nft'] })
    expect(stderr).toMatch(/Not everything was checked.* iptables=".*" ipvs="ip,ipset"/)
    expect(status).toBe(0)
    expect(inside('nft', ['list', 'tables'])).toBe('')
  })

  test('refuses while kube-proxy runs, and names the process', async () => {
    inside('nft', ['-f', '-'], 'add table ip kpng\nadd table ip kube-proxy\n')
    const tables = inside('nft', ['list', 'tables'])
    const proxy = await namespace.start('kube-proxy')
    const { status, stderr } = cleanUp('--kube-proxy', '--backend', 'nft')
    expect(stderr).toContain(`kube-proxy runs on this node (process ${proxy.pid}). Its rules are in use`)
    expect(status).toBe(1)
    expect(cleanUp('--kube-proxy', '--dry-run')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('nft delete table ip kube-proxy'),
      stderr: expect.stringContaining(`process ${proxy.pid}`),
    })
    expect(inside('nft', ['list', 'tables'])).toBe(tables)
    expect(cleanUp('--kube-proxy', '--force')).toMatchObject({ status: 0 })
    expect(inside('nft', ['list', 'tables'])).toBe('table ip kpng\n')
    await proxy.end()
  })

  test('a kube-proxy of another network namespace does not matter', async () => {
    const proxy = await namespace.start('kube-proxy', ['unshare', '--net'])
    expect(cleanUp('--kube-proxy')).toMatchObject({ status: 0 })
    await proxy.end()
  })

  test('refuses if it cannot see whether kube-proxy runs, as in a container', () => {
    inside('nft', ['-f', '-'], 'add table ip kube-proxy\n')
    const { status, stderr } = namespace.kpng(['cleanup', '--kube-proxy'], 'without its processes')
    expect(stderr).toMatch(/cannot see all processes of the node.*hostPID: true/)
    expect(status).toBe(1)
    expect(inside('nft', ['list', 'tables'])).toBe('table ip kube-proxy\n')
    const forced = namespace.kpng(['cleanup', '--kube-proxy', '--force'], 'without its processes')
    expect(forced).toMatchObject({ status: 0 })
    expect(inside('nft', ['list', 'tables'])).toBe('')
  })

  test("kpng's own stay unless --backend names them", () => {
    const make = () => inside('nft', ['-f', '-'], 'add table ip kpng\nadd table ip kube-proxy\n')
    make()
    expect(cleanUp('--kube-proxy')).toMatchObject({ status: 0 })
    expect(inside('nft', ['list', 'tables'])).toBe('table ip kpng\n')
    make()
    expect(cleanUp('--kube-proxy', '--backend', 'nft')).toMatchObject({ status: 0 })
    expect(inside('nft', ['list', 'tables'])).toBe('')
  })

  test("a chain that somebody else's rule needs stays, and is named", () => {
    restore('iptables-nft', {
      nat: [':MINE - [0:0]', ':KUBE-MARK-MASQ - [0:0]', ':KUBE-SERVICES - [0:0]', '-A MINE -j KUBE-MARK-MASQ'],
    })
    const { status, stderr } = cleanUp('--kube-proxy')
    expect(status).toBe(0)
    expect(stderr).toMatch(/Kept.*KUBE-MARK-MASQ/)
    const left = saved('iptables-nft').filter((line) => /MINE|KUBE/.test(line))
    expect(left).toEqual([':KUBE-MARK-MASQ - [0:0]', ':MINE - [0:0]', '-A MINE -j KUBE-MARK-MASQ'])
  })
})

const kpng = fileURLToPath(new URL('./bin/kpng.js', import.meta.url))

test.each([[['--dry-run']], [['--dry-run', '--kube-proxy', '--backend', 'nft']]])('%j is wrong usage', (args) => {
  const { status, stderr } = spawnSync(process.execPath, [kpng, 'cleanup', ...args], { encoding: 'utf8' })
  expect(stderr).toContain('--dry-run')
  expect(status).toBe(2)
})
