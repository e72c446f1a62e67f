import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { HcnNetwork } from '../hcn.js'
import { remoteEndpoint } from '../remote-endpoints.js'
import { claimLoopback, conformanceOptions, type Loopback, trafficOptions } from '../testing/conformance.js'
import { FakeHcn } from '../testing/fake-hcn.js'
import { type Choose, type Forwarding, forwarding } from '../testing/forwarding.js'
import { type NetworkType, networkSettings } from '../testing/node.js'
import { guesses, hex } from './guesses.js'
import { type ConformanceOptions, clean, probe, type Report, reportText, sync, traffic, type Verdict } from './index.js'

let hcn: FakeHcn
let network: HcnNetwork
const options = (type: NetworkType = 'l2bridge'): ConformanceOptions => conformanceOptions(hcn, type)

/** A node in use: a Service of kube-proxy, with a remote endpoint. */
async function useNode(type: NetworkType, version = { Major: 15, Minor: 4 }): Promise<void> {
  hcn = new FakeHcn()
  hcn.hnsVersion = version
  network = await hcn.createNetwork(networkSettings(type))
  const pod = await hcn.createEndpoint(network.ID, {})
  const remote = await hcn.createEndpoint(network.ID, remoteEndpoint('10.244.2.7', '10.0.0.5'))
  for (const FrontendVIPs of [['10.96.0.1'], []])
    await hcn.createLoadBalancer({
      ...{ HostComputeEndpoints: [pod.ID, remote.ID], FrontendVIPs, Flags: 0 },
      PortMappings: [{ Protocol: 6, InternalPort: 8080, ExternalPort: 30_000 }],
    })
}
beforeEach(() => useNode('l2bridge'))

const objects = () => [...hcn.balancers.keys(), ...hcn.endpoints.keys(), ...hcn.networksById.keys()].sort()
const having = ({ checks }: Report, wanted: Verdict) => checks.filter(({ verdict }) => verdict === wanted)
const failed = (report: Report) => having(report, 'failed').map(({ name, sentence }) => `${name}: ${sentence}`)
const sentence = ({ checks }: Report, name: string) => checks.find((check) => check.name === name)?.sentence

describe('probe', () => {
  test('says what HNS can do and has, and changes nothing', async () => {
    hcn.writes()
    const report = await probe(options())
    expect(report.passed).toBe(true)
    expect(sentence(report, 'version')).toMatch(/^HNS 15\.4: schema 2, direct server return, dual stack/)
    expect(sentence(report, 'what is used')).toMatch(/^The network cbr0, L2Bridge, 10\.244\.1\.0\/24/)
    expect(sentence(report, 'endpoints')).toBe('1 endpoint on this node, 1 remote endpoint.')
    expect(hcn.writes()).toEqual([])
  })

  test('names what is odd', async () => {
    const [first] = [...hcn.balancers.values()]
    hcn.balancers.set('copy', { ...first, ID: 'copy' })
    hcn.balancers.set('half', { ID: 'half' })
    hcn.endpoints.delete(first?.HostComputeEndpoints?.[0] as string)
    expect(sentence(await probe(options()), 'load balancers')).toBe(
      '4 load balancers; 1 without port mappings, as a failed creation leaves them; 1 frontend more than once; ' +
        '1 endpoint that no longer exist. Stop kube-proxy before kpng starts.',
    )
  })

  test.each([
    [{ networkName: 'cbr1' }, 'what is used: There is no HNS network cbr1: there are cbr0.'],
    [{ networkName: '' }, 'what is used: No network was named. Give --network-name: there are cbr0.'],
  ])('%o fails', async (more, message) => {
    expect(failed(await probe({ ...options(), ...more }))).toEqual([message])
  })

  test('an overlay network without a source VIP, and an old HNS, fail', async () => {
    await useNode('overlay', { Major: 9, Minor: 1 })
    expect(failed(await probe({ ...options('overlay'), sourceVip: '' }))).toEqual([
      'version: HNS 9.1 is too old; 9.2 is needed. Update Windows.',
      'overlay: An overlay network needs --source-vip, and none was given.',
    ])
  })
})

describe.each([
  ['l2bridge', { Major: 9, Minor: 5 }, { passed: 24, skipped: 2 }],
  ['l2bridge', { Major: 15, Minor: 4 }, { passed: 25, skipped: 1 }],
  ['overlay', { Major: 15, Minor: 4 }, { passed: 24, skipped: 1 }],
] as const)('sync on %s, HNS %o', (type, version, counts) => {
  test('passes, beside the Services of the node; clean removes what it made, and nothing else', async () => {
    await useNode(type, version)
    const before = objects()
    const report = await sync(options(type))
    expect(failed(report)).toEqual([])
    expect({ passed: having(report, 'passed').length, skipped: having(report, 'skipped').length }).toEqual(counts)
    expect(having(report, 'noted').every((check) => check.sentence.includes('as the stub answers'))).toBe(true)
    expect(hcn.balancers.size).toBeGreaterThan(20)
    expect(before.every((id) => objects().includes(id))).toBe(true)
    const again = await sync(options(type))
    expect(failed(again)).toEqual([])
    expect(failed(await clean(options(type)))).toEqual([])
    expect(objects()).toEqual(before)
  })
})

describe('sync', () => {
  test('a load balancer that HNS refuses fails, with what HNS answered', async () => {
    hcn.faults = [{ call: 'createLoadBalancer', code: 0x803b0013, after: guesses.length }]
    const report = await sync(options())
    expect(report.passed).toBe(false)
    expect(failed(report)).toContain(
      'cluster IP: HNS does not hold 198.18.0.1:80/tcp: createLoadBalancer failed with 0x803b0013: injected.',
    )
  })

  test('what HNS holds differently fails, with both documents', async () => {
    const create = hcn.createLoadBalancer.bind(hcn)
    hcn.createLoadBalancer = async (settings) => {
      const made = await create(settings)
      const mappings = made.PortMappings?.map((mapping) => ({ ...mapping, Flags: 0 }))
      hcn.balancers.set(made.ID, { ...made, PortMappings: mappings ?? [] })
      return made
    }
    const [first] = failed(await sync(options())).filter((text) => text.startsWith('node port:'))
    expect(first).toMatch(/HNS holds IPv4 node port 32706\/tcp differently: expected .*"Flags":18.*, found .*"Flags":0/)
  })

  test('a load balancer that HNS keeps though it was deleted fails', async () => {
    hcn.deleteLoadBalancer = async () => {}
    expect(failed(await sync(options()))).toContainEqual(
      expect.stringMatching(/^other load balancers: HNS holds a load balancer that nobody wants: IPv4 198\.18\./),
    )
  })

  test('a pod to which HNS gives no address is said, with what to do', async () => {
    await hcn.createEndpoint(network.ID, { Name: 'kpng-conformance-pod-1', IpConfigurations: [] })
    await expect(sync(options())).rejects.toThrow('Give two free addresses of the network with --pod-ips')
  })
})

describe('clean', () => {
  test('what HNS does not delete fails, and is deleted by the next one', async () => {
    const before = objects()
    await sync(options())
    hcn.faults = [{ call: 'deleteLoadBalancer', code: 0x80004005, times: 1 }]
    const report = await clean(options())
    expect(failed(report)).toHaveLength(1)
    expect(failed(report)[0]).toContain('could not be deleted: deleteLoadBalancer failed with 0x80004005')
    expect((await clean(options())).passed).toBe(true)
    expect(objects()).toEqual(before)
  })

  test('a load balancer without port mappings may be that of another proxy: it is named, and stays', async () => {
    hcn.balancers.set('half', { ID: 'half' })
    expect(sentence(await clean(options()), 'load balancer')).toContain('hnsdiag delete loadbalancers half')
    expect(hcn.balancers.has('half')).toBe(true)
  })
})

describe('traffic', () => {
  let path: Forwarding
  let loopback: Loopback
  const run = async (choose?: Choose, more: ConformanceOptions = {}) => {
    hcn = new FakeHcn()
    const given = await trafficOptions(hcn, loopback)
    path = forwarding(hcn, given.nodeIp, choose)
    return await traffic({ ...given, openHcn: async () => path.hcn, ...more })
  }
  beforeAll(async () => {
    loopback = await claimLoopback()
  })
  afterAll(() => loopback.close())
  afterEach(() => path.close())

  test('reaches each server through the load balancers, and leaves nothing behind', async () => {
    const report = await run()
    expect(failed(report)).toEqual([])
    expect(having(report, 'passed')).toHaveLength(7)
    expect(sentence(report, 'session affinity')).toMatch(/kpng-conformance-pod-. 20 times/)
    expect(sentence(report, 'node port')).toContain('kpng-conformance-pod-')
    expect(sentence(report, 'without endpoints')).toContain('ECONNREFUSED')
    expect(hcn.attached).toHaveLength(2)
    expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([0, 0])
  })

  test('a server that gets no traffic, and one that gets it though it is gone, fail', async () => {
    const second = `${loopback.prefix}.100.11`
    expect(failed(await run((ips) => ips.at(-1) as string))[0]).toMatch(
      /^cluster IP, TCP: Only kpng-conformance-pod-. answered in 20 requests\.$/,
    )
    path.close()
    const report = await run((ips, _, count) => (ips.length === 1 ? second : (ips[count % 2] as string)))
    expect(failed(report)).toEqual([
      expect.stringMatching(/^session affinity: More than one server answered/),
      'after one of two endpoints is gone: 20 of 20 requests: kpng-conformance-pod-2.',
    ])
  })

  test('a load balancer that passes nothing fails with what clients see', async () => {
    const nobody: Choose = (ips, { Protocol }) => (Protocol === 6 ? `${loopback.prefix}.100.99` : (ips[0] as string))
    const report = await run(nobody, { settleMs: 0 })
    expect(failed(report)[0]).toMatch(
      /^cluster IP, TCP: 127\.\d+\.0\.201:80 does not answer: (read ECONNRESET|socket hang up)/,
    )
  })

  test('--pods that do not answer are named', async () => {
    const pods = [98, 99].map((last) => `${loopback.prefix}.100.${last}`)
    await expect(run(undefined, { pods })).rejects.toThrow(`The pod does not answer at http://${pods[0]}:8080/hostname`)
  })
})

test('the text has one line per check, and the counts', async () => {
  const text = reportText(await probe({ ...options(), networkName: 'cbr1' }))
  expect(text.split('\n').slice(1)).toEqual([
    expect.stringMatching(/^passed {3}version: HNS 15\.4/),
    expect.stringMatching(/^noted {4}network cbr0: L2Bridge/),
    'failed   what is used: There is no HNS network cbr1: there are cbr0.',
    '1 passed, 1 failed, 0 skipped, 1 noted',
    '',
  ])
})

test('docs/windows.md lists each guess', () => {
  const page = readFileSync(new URL('../../../docs/windows.md', import.meta.url), 'utf8')
  const rows = guesses.map(({ name, code, seen }) => `| ${name} | \`${hex(code)}\` | ${seen ? 'seen' : 'guess'} |`)
  expect(rows.filter((row) => !page.includes(row))).toEqual([])
})
