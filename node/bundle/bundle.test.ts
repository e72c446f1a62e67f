import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { collect } from './collect.js'
import { nameHasher, namesIn } from './hash-names.js'
import { makeBundle } from './index.js'
import { proxyRules } from './platform-commands.js'
import { environmentText, withoutSecrets } from './secrets.js'
import { tarOf } from './tar.js'

describe('an archive', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kpng-bundle-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  test('is read by tar: files of every size, in folders, with any text', () => {
    const files = [0, 1, 511, 512, 513, 100_000].map((size) => ({ path: `a/b/${size}.txt`, text: 'x'.repeat(size) }))
    files.push({ path: 'umlauts.txt', text: 'größer als ein Byte\n' })
    const archive = join(folder, 'a.tar')
    writeFileSync(archive, tarOf(files, Date.parse('2026-01-02T03:04:05Z')))
    execFileSync('tar', ['xf', archive, '-C', folder], { stdio: 'pipe' })
    for (const { path, text } of files) expect(readFileSync(join(folder, path), 'utf8')).toBe(text)
    const listed = execFileSync('tar', ['tvf', archive, '--utc'], { encoding: 'utf8' })
    expect(listed).toContain('-rw------- root/root')
    expect(listed).toContain('2026-01-02 03:04')
  })

  test('refuses a path that it cannot hold', () => {
    expect(() => tarOf([{ path: 'x'.repeat(101), text: '' }], 0)).toThrow('too long')
  })
})

test.each([
  ['Authorization: Bearer abcdef123456', 'abcdef123456'],
  ['token=s3cr3tvalue and more', 's3cr3tvalue'],
  ['{"password": "hunter2hunter2"}', 'hunter2hunter2'],
  ['client-key-data: LS0tLS1CRUdJTg==', 'LS0tLS1CRUdJTg'],
  ['http://ada:lovelace@proxy:3128/', 'lovelace'],
  ['seen eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl here', 'eyJzdWIiOiJhIn0'],
  ['-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----', 'MHcCAQEE'],
])('a secret is left out of %j', (text, secret) => {
  expect(withoutSecrets(text)).not.toContain(secret)
  expect(withoutSecrets(text)).toContain('<left out>')
})

test.each(['kubeproxy_sync_total 3', 'services 3, endpoints 4', 'ip daddr 10.96.0.1 tcp dport 443 accept'])(
  'other texts stay: %s',
  (text) => {
    expect(withoutSecrets(text)).toBe(text)
  },
)

test('only known variables of the environment are shown', () => {
  expect(environmentText({ NODE_NAME: 'a', AWS_SECRET_ACCESS_KEY: 'planted', KUBECONFIG: '/x' })).toBe('NODE_NAME=a\n')
})

describe('hashed names', () => {
  const texts = [
    '{"namespace": "shop", "name": "checkout", "hostname": "checkout-7d9f"}',
    'WARN Skipped object="Service shop/cart" reason="bad"',
    'ip daddr 10.96.0.10 comment "shop/payments:http"',
    'kpng_x{namespace="shop",service="search"} 1',
    'Service default/kubernetes has node=worker-1',
  ]
  const names = namesIn(texts)

  test('are found where rules, logs, metrics and answers have them', () => {
    expect([...names].sort()).toEqual(
      ['cart', 'checkout', 'checkout-7d9f', 'payments', 'search', 'shop', 'worker-1'].sort(),
    )
  })

  test('are the same in all texts, and other words stay', () => {
    const hash = nameHasher(names, 'salt')
    const [answer = '', log = '', rule = '', metric = '', well = ''] = texts.map(hash)
    const shop = /"namespace": "(name-[0-9a-f]{10})"/.exec(answer)?.[1] ?? 'none'
    for (const text of [log, rule, metric]) expect(text).toContain(shop)
    for (const text of [answer, log, rule, metric, well]) {
      expect(text).not.toMatch(/shop|checkout|cart|payments|search|worker-1|10\.96/)
    }
    expect(well).toContain('Service default/kubernetes')
    expect(log).toContain('WARN Skipped')
  })

  test('pods of a Service and names in DNS', () => {
    const hash = nameHasher(new Set(['web', 'shop']), 'salt')
    expect(hash('web-7d9f5-x2k4q web.shop.svc.cluster.local webhook kube-proxy')).toMatch(
      /^name-\w{10} name-\w{10}\.name-\w{10}\.svc\.cluster\.local webhook kube-proxy$/,
    )
  })

  test('words of sentences are not names', () => {
    const texts = ['One Service gets the traffic', 'EndpointSlices that somebody wrote', 'Node of the cluster']
    expect(namesIn(texts)).toEqual(new Set())
  })

  test('the context, the user and the host of a cluster', () => {
    const text = 'cluster https://api.corp.example:6443 (context "ada@prod" of /home/lovelace/.kube/config)'
    const hashed = nameHasher(namesIn([text]), 'salt')(text)
    expect(hashed).not.toMatch(/corp|ada|prod|lovelace/)
  })

  test('both ends of a range of addresses', () => {
    const hash = nameHasher(new Set(), 'salt')
    const [first, last] = [hash('203.0.113.7'), hash('203.0.113.9')]
    expect(hash('ip saddr 203.0.113.7-203.0.113.9 accept')).toBe(`ip saddr ${first}-${last} accept`)
    expect(hash('fd00::7-fd00::9')).toMatch(/^ip-\w{10}-ip-\w{10}$/)
    expect(hash('version 1.0.6-2.3.4')).toBe('version 1.0.6-2.3.4')
  })

  test('addresses of both families, in prefixes and with ports; loopback stays', () => {
    const hash = nameHasher(new Set(), 'salt')
    const text = '10.0.0.1:80 10.0.0.0/8 [fd00::1]:443 fd00::/64 127.0.0.1 ::1 12:30:45 1.0.6'
    const hashed = hash(text)
    expect(hashed).toMatch(
      /^ip-\w{10}:80 ip-\w{10}\/8 \[ip-\w{10}\]:443 ip-\w{10}\/64 127\.0\.0\.1 ::1 12:30:45 1\.0\.6$/,
    )
    expect(nameHasher(new Set(), 'another salt')(text)).not.toBe(hashed)
  })
})

test("the archive's own explanation stays readable if a Service is named after one of its words", async () => {
  const { archive } = await makeBundle({
    ...{ version: '1', agentSocket: '/nowhere', metricsAddress: '127.0.0.1:1', unit: 'kpng', platform: 'win32' },
    report: 'shop-secret is not there',
    run: async () => 'Service shop/report and Service shop/bug',
    hashNames: true,
    knownNames: ['shop/shop-secret'],
  })
  const text = gunzipSync(archive).toString()
  expect(text).toContain('What kpng knows about this node, for a bug report.')
  expect(text).toMatch(/doctor\.txt: name-\w{10} is not there/)
  expect(text).toMatch(/Service name-\w{10}\/name-\w{10} and Service name-\w{10}\/name-\w{10}/)
})

test('of iptables, the chains of kpng and Kubernetes and what leads to them', () => {
  const saved = [
    ...['*nat', ':PREROUTING ACCEPT [0:0]', ':DOCKER - [0:0]', ':KUBE-SERVICES - [0:0]', ':KPNG-PORTALS-HOST - [0:0]'],
    '-A PREROUTING -m comment --comment "the VPN of ada" -s 198.51.100.7/32 -j RETURN',
    ...['-A PREROUTING -j KUBE-SERVICES', '-A KUBE-SERVICES -d 10.96.0.1/32 -j ACCEPT', 'COMMIT', ''],
  ].join('\n')
  expect(proxyRules(saved)).toBe(
    [
      ...['*nat', ':PREROUTING ACCEPT [0:0]', ':KUBE-SERVICES - [0:0]', ':KPNG-PORTALS-HOST - [0:0]'],
      ...['-A PREROUTING -j KUBE-SERVICES', '-A KUBE-SERVICES -d 10.96.0.1/32 -j ACCEPT', 'COMMIT'],
      ...['# 2 chains and rules of others are left out', ''],
    ].join('\n'),
  )
})

describe('on Windows', () => {
  const options = {
    ...{
      version: '1',
      agentSocket: '/nowhere/agent.sock',
      metricsAddress: '127.0.0.1:1',
      unit: 'kpng',
      report: 'not asked',
    },
    platform: 'win32',
  } as const

  test('the lists of HNS and the event logs are taken, and no program of Linux is run', async () => {
    const ran: string[] = []
    const { files } = await collect({
      ...options,
      run: async (program, args) => {
        ran.push([program, ...args].join(' '))
        return `output of ${program}`
      },
    })
    const events = (log: string) => `wevtutil qe ${log} /c:2000 /rd:true /f:text`
    expect(ran).toEqual([
      ...['networks', 'endpoints', 'loadbalancers', 'namespaces'].map((list) => `hnsdiag list ${list} -d`),
      events('Microsoft-Windows-Host-Network-Service-Admin'),
      events('Microsoft-Windows-Host-Network-Service-Operational'),
      events('Microsoft-Windows-Hyper-V-VmSwitch-Operational'),
      `${events('System')} /q:*[System[Provider[@Name='Microsoft-Windows-Hyper-V-VmSwitch']]]`,
    ])
    expect(files).toContainEqual({ path: 'hns/loadbalancers.txt', text: 'output of hnsdiag' })
    expect(files).toContainEqual({ path: 'logs/hns-admin.txt', text: 'output of wevtutil' })
  })

  test('a program that is missing is named, and the others are still run', async () => {
    const { files, missing } = await collect({
      ...options,
      run: async (program) => {
        if (program === 'hnsdiag') throw new Error('hnsdiag is not installed')
        return ''
      },
    })
    expect(missing).toContainEqual({ what: 'hns/networks.txt', reason: 'hnsdiag is not installed' })
    expect(files.map(({ path }) => path)).toContain('logs/vmswitch-operational.txt')
  })
})
