import { endpoint, FakeCore, ips, type TestService, tcp } from '@kpng/client/testing'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { winkernelBackend } from './backend.js'
import type { HcnNetwork } from './hcn.js'
import { ipOf, remoteEndpoint } from './remote-endpoints.js'
import { FakeHcn } from './testing/fake-hcn.js'
import { makeNetwork, type NetworkType, options, start } from './testing/node.js'

// What users of kube-proxy on Windows suffer from, and what HNS does wrong: each as a test. Numbers are issues of kubernetes/kubernetes.

let hcn: FakeHcn
let network: HcnNetwork
let core: FakeCore

const fresh = async (type: NetworkType = 'l2bridge', major = 12) => {
  hcn = new FakeHcn()
  hcn.hnsVersion = { Major: major, Minor: 4 }
  network = await makeNetwork(hcn, type)
  core = start(hcn, type)
}
beforeEach(() => fresh())
afterEach(async () => {
  await core.stop()
  expect(hcn.dangling).toEqual([])
})

/** Two load balancers: a cluster IP and a load-balancer IP. */
const web = (...addresses: string[]): TestService => ({
  name: 'web',
  type: 'LoadBalancer',
  ips: { clusterIps: ips('10.96.0.10'), loadBalancerIps: ips('203.0.113.9') },
  endpoints: addresses.map((ip) => endpoint(ip, { local: ip.startsWith('10.244.1.') })),
})
const podEndpoints = 3
/** A full sync without a change, as the runner does it after a failure. */
const restart = async (type: NetworkType = 'l2bridge', ...services: TestService[]) => {
  await core.stop()
  core = start(hcn, type, {}, ...services)
  await core.sync()
}

describe('a sync', () => {
  test('writes what is missing, then only what changed', async () => {
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    expect(hcn.writes()).toContain('createEndpoint')
    expect(hcn.balancers.size).toBe(2)
    await core.set({ ...web('10.244.1.5'), name: 'other', ips: { clusterIps: ips('10.96.0.11') } }).sync()
    expect(hcn.writes()).toEqual(['createLoadBalancer'])
  })

  test('leaves out an address with source ranges, which HNS cannot enforce', async () => {
    const ranges = [{ targetIps: ips('192.0.2.1'), sourceRanges: ['203.0.113.0/24'] }]
    const addresses = { clusterIps: ips('10.96.0.10'), loadBalancerIps: ips('192.0.2.1') }
    await core.set({ ...web('10.244.1.5'), ips: addresses, ports: [tcp(80)], ipFilters: ranges }).sync()
    const vips = [...hcn.balancers.values()].flatMap(({ FrontendVIPs = [] }) => FrontendVIPs)
    expect(vips).toEqual(['10.96.0.10'])
  })

  test('after a restart of kpng, what is right is adopted', async () => {
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    hcn.writes()
    await restart('l2bridge', web('10.244.1.5', '10.244.2.7'))
    expect(hcn.writes()).toEqual([])
  })

  test('of 1,000 load balancers that are right writes nothing, and reads none of them again', async () => {
    const services = Array.from({ length: 1000 }, (_, at) => ({
      name: `s${at}`,
      ips: { clusterIps: ips(`10.96.${at >> 8}.${at & 255}`) },
      endpoints: [endpoint('10.244.1.5', { local: true }), endpoint(`10.244.2.${at % 250}`)],
    }))
    await core.set(...services).sync()
    expect(hcn.balancers.size).toBe(1000)
    hcn.calls = []
    await core.set({ name: 'headless', endpoints: [] }).sync()
    expect(hcn.calls).toEqual(['networkNamed', 'endpointIds', 'loadBalancerIds'])
  })

  test('shares remote endpoints, and removes the last use after the load balancers', async () => {
    const other = { ...web('10.244.2.7'), name: 'other', ips: { clusterIps: ips('10.96.0.11') } }
    await core.set(web('10.244.2.7'), other).sync()
    expect(hcn.endpoints.size).toBe(podEndpoints + 1)
    await core.delete('web').sync()
    expect([hcn.endpoints.size, hcn.balancers.size]).toEqual([podEndpoints + 1, 1])
    hcn.writes()
    await core.delete('other').sync()
    expect(hcn.writes()).toEqual(['deleteLoadBalancer', 'deleteEndpoint'])
    expect(hcn.endpoints.size).toBe(podEndpoints)
  })

  test('leaves remote endpoints of others alone', async () => {
    await hcn.createEndpoint(network.ID, { ...remoteEndpoint('10.9.9.9'), MacAddress: '00-11-22-33-44-55' })
    await core.set(web('10.244.1.5')).sync()
    expect(hcn.endpoints.size).toBe(podEndpoints + 1)
  })

  test('one refused load balancer does not stop the others, and is tried again', async () => {
    hcn.faults = [{ call: 'createLoadBalancer', code: 0x803b000d, times: 1 }]
    await core.set(web('10.244.1.5')).sync()
    expect(hcn.balancers.size).toBe(1)
    await core.set({ name: 'headless', endpoints: [] }).sync()
    expect(hcn.balancers.size).toBe(2)
  })

  test('pods on this node that have no endpoint yet are added when the network plug-in has made it', async () => {
    await core.set(web('10.244.1.5', '10.244.1.9')).sync()
    expect(endpointCounts()).toEqual([1, 1])
    await hcn.createEndpoint(network.ID, { IpConfigurations: [{ IpAddress: '10.244.1.9' }] })
    await core.set({ name: 'headless', endpoints: [] }).sync()
    expect(endpointCounts()).toEqual([2, 2])
  })
})

const servedIps = () =>
  [...hcn.balancers.values()].map(({ HostComputeEndpoints = [] }) =>
    HostComputeEndpoints.map((id) => ipOf(hcn.endpoints.get(id) ?? {}))
      .sort()
      .join(' '),
  )
const endpointCounts = () =>
  [...hcn.balancers.values()].map(({ HostComputeEndpoints = [] }) => HostComputeEndpoints.length)

describe('known faults', () => {
  const touch = () => core.set({ name: `touch-${Math.random()}`, endpoints: [] }).sync()

  test('135802: a load balancer that others deleted is made again', async () => {
    await core.set(web('10.244.1.5')).sync()
    hcn.balancers.delete([...hcn.balancers.keys()][0] as string)
    hcn.writes()
    await touch()
    expect(hcn.writes()).toEqual(['createLoadBalancer'])
  })

  test('110674, 110849: a network that cannot be queried is not a network that is gone', async () => {
    await core.set(web('10.244.1.5')).sync()
    hcn.writes()
    hcn.faults = [{ call: 'networkNamed', code: 0x80004005, times: 1 }]
    await expect(touch()).rejects.toThrow('0x80004005')
    expect(hcn.writes()).toEqual([])
    expect(hcn.balancers.size).toBe(2)
  })

  test('113524: a deletion fails, and the Service comes back with other pods', async () => {
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    hcn.faults = [{ call: 'deleteLoadBalancer', code: 0x80004005, times: 2 }]
    await core.delete('web').sync()
    expect(hcn.balancers.size).toBe(2)
    expect(hcn.dangling).toEqual([])
    await core.set(web('10.244.1.5', '10.244.2.8')).sync()
    expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([2, podEndpoints + 1])
  })

  test('112836: of two load balancers with one frontend, one goes', async () => {
    await core.set(web('10.244.1.5')).sync()
    const [[id, balancer]] = [...hcn.balancers] as [[string, object]]
    const copy = { ...balancer, ID: id.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }
    hcn.balancers.set(copy.ID, copy)
    await touch()
    expect(hcn.balancers.size).toBe(2)
  })

  test('137530: without endpoints there is no load balancer that holds the port', async () => {
    await core.set(web('10.244.1.5')).sync()
    await core.set(web()).sync()
    expect(hcn.balancers.size).toBe(0)
    await core.set(web('10.244.1.6')).sync()
    expect(hcn.balancers.size).toBe(2)
  })

  test('137530: Windows Server 2019 keeps a port for a while after a deletion; it is tried until it is free', async () => {
    await core.set(web('10.244.1.5')).sync()
    hcn.portsHeldAfterDelete = 2
    await core.set(web('10.244.1.6')).sync()
    await touch()
    expect(hcn.balancers.size).toBe(0)
    await touch()
    expect(hcn.balancers.size).toBe(2)
  })

  test('139519: while HNS is down nothing is forgotten', async () => {
    await core.set(web('10.244.1.5')).sync()
    hcn.faults = [{ call: '*', code: 0x800706b5 }]
    await expect(touch()).rejects.toThrow('0x800706b5')
    hcn.faults = []
    hcn.writes()
    await touch()
    expect(hcn.writes()).toEqual([])
  })

  test('139519: HNS that goes down in a sync is not asked again until the next one', async () => {
    await core.set(web('10.244.1.5')).sync()
    hcn.calls = []
    hcn.faults = [{ call: '*', code: 0x800706b5, after: 4 }]
    await expect(core.set(web('10.244.1.6', '10.244.2.7')).sync()).rejects.toThrow('0x800706b5')
    expect(hcn.calls).toHaveLength(5)
    hcn.faults = []
    await core.sync()
    expect(servedIps()).toEqual(['10.244.1.6 10.244.2.7', '10.244.1.6 10.244.2.7'])
  })

  test('141489: a load balancer without port mappings is removed', async () => {
    hcn.leavesHalf = true
    hcn.faults = [{ call: 'createLoadBalancer', code: 0x803b0007, times: 1 }]
    await core.set(web('10.244.1.5')).sync()
    expect([...hcn.balancers.values()].filter(({ PortMappings }) => !PortMappings)).toHaveLength(1)
    await touch()
    expect(hcn.balancers.size).toBe(2)
    expect([...hcn.balancers.values()].every(({ PortMappings }) => PortMappings)).toBe(true)
  })

  test('131466: a modification that HNS ignores is made by replacing the load balancer', async () => {
    await core.stop()
    await fresh('l2bridge', 15)
    hcn.ignoresModify = true
    await core.set(web('10.244.1.5')).sync()
    hcn.writes()
    await core.set(web('10.244.1.5', '10.244.1.6')).sync()
    expect(endpointCounts()).toEqual([2, 2])
    hcn.ignoresModify = false
    hcn.writes()
    await core.set(web('10.244.1.6')).sync()
    expect(hcn.writes()).toEqual(['modifyLoadBalancer', 'modifyLoadBalancer'])
  })

  test('a modification that HNS made, but answered with an error, is seen', async () => {
    await core.stop()
    await fresh('l2bridge', 15)
    await core.set(web('10.244.1.5')).sync()
    hcn.failsAfterModify = true
    await core.set(web('10.244.1.6')).sync()
    hcn.failsAfterModify = false
    await core.set(web('10.244.1.5')).sync()
    expect(servedIps()).toEqual(['10.244.1.5', '10.244.1.5'])
  })

  test('138000, 130963: a pod on this node wins over a remote endpoint with its IP, which is removed', async () => {
    hcn.allowsDuplicateIps = true
    await hcn.createEndpoint(network.ID, remoteEndpoint('10.244.1.5'))
    await core.set(web('10.244.1.5')).sync()
    expect(hcn.endpoints.size).toBe(podEndpoints)
    expect(endpointCounts()).toEqual([1, 1])
  })

  test('138000: also if the remote endpoint is older than the pod', async () => {
    hcn.allowsDuplicateIps = true
    await hcn.createEndpoint(network.ID, remoteEndpoint('10.244.1.9'))
    const pod = await hcn.createEndpoint(network.ID, { IpConfigurations: [{ IpAddress: '10.244.1.9' }] })
    await core.set(web('10.244.1.9')).sync()
    expect([...hcn.balancers.values()].map((each) => each.HostComputeEndpoints)).toEqual([[pod.ID], [pod.ID]])
    expect(hcn.endpoints.size).toBe(podEndpoints + 1)
  })

  test('130963: a remote endpoint does not keep the IP of a pod that is on this node now', async () => {
    await core.set(web('10.244.2.7')).sync()
    const moved = endpoint('10.244.2.7', { local: true })
    await core.set({ ...web(), endpoints: [moved] }).sync()
    expect(hcn.balancers.size).toBe(0)
    expect(hcn.endpoints.size).toBe(podEndpoints)
  })

  test('76316, 91703: an endpoint that a load balancer still holds is not deleted', async () => {
    await core.set(web('10.244.2.7')).sync()
    hcn.faults = [{ call: 'deleteLoadBalancer', code: 0x80004005, times: 1 }]
    await core.delete('web').sync()
    expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([1, podEndpoints + 1])
    await touch()
    expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([0, podEndpoints])
  })

  test('kubernetes/community 8883: a health check on a port that kpng listens on is refused, and its Service is served', async () => {
    const backend = winkernelBackend({
      ...{ ...options(hcn, 'l2bridge'), forwardHealthCheckVip: true, rootEndpointName: 'cbr0-root' },
    })
    const own = new FakeCore(backend)
    hcn.listeningPorts.add(10256)
    await own.set(web('10.244.1.5')).sync()
    expect(servedIps()).toEqual(['10.244.1.5', '10.244.1.5'])
    await own.set(web('10.244.1.6')).sync()
    expect(servedIps()).toEqual(['10.244.1.6', '10.244.1.6'])
    expect([...(backend.observations?.failures?.().keys() ?? [])]).toEqual(['health check 203.0.113.9:10256/tcp'])
    // With a health-check node port of its own the check is on another port.
    await own.set({ ...web('10.244.1.6'), externalTrafficToLocal: true, healthCheckNodePort: 32_000 }).sync()
    expect(servedIps()).toEqual(['10.244.1.6', '10.244.1.6', '10.244.1.1'])
    expect(backend.observations?.failures?.().size).toBe(0)
    await own.stop()
  })

  test('a pod whose endpoint cannot be read is not taken out of its load balancers', async () => {
    await core.set(web('10.244.1.5', '10.244.1.6')).sync()
    await core.stop()
    core = start(hcn, 'l2bridge', {}, web('10.244.1.5', '10.244.1.6'))
    hcn.faults = [{ call: 'endpoint', code: 0x80004005, times: 1 }]
    hcn.writes()
    await core.sync()
    expect(hcn.writes()).toEqual([])
  })
})

describe.each(['l2bridge', 'overlay'] as const)('HNS fails at each call of a sync (%s)', (type) => {
  test.each([
    { how: 'is down', code: 0x800706b5, times: Number.POSITIVE_INFINITY, major: 12, calls: 9 },
    { how: 'refuses one call', code: 0x80004005, times: 1, major: 12, calls: 9 },
    { how: 'is down', code: 0x800706b5, times: Number.POSITIVE_INFINITY, major: 15, calls: 7 },
    { how: 'refuses one call', code: 0x80004005, times: 1, major: 15, calls: 7 },
  ])('HNS $major $how: the next sync makes it right', async ({ code, times, major, calls }) => {
    let failed = 0
    for (let after = 0; ; after++) {
      await core.stop()
      await fresh(type, major)
      await core.set(web('10.244.1.5', '10.244.2.7')).sync()
      hcn.calls = []
      hcn.faults = [{ call: '*', code, times, after }]
      await core
        .set(web('10.244.1.6', '10.244.2.8'))
        .sync()
        .catch(() => {})
      const hasFailed = after < hcn.calls.length
      hcn.faults = []
      expect(hcn.dangling).toEqual([])
      await core.set({ name: 'touch', endpoints: [] }).sync()
      const own = type === 'overlay' ? 2 : 0
      expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([2, podEndpoints + 1 + own])
      expect(servedIps()).toEqual(['10.244.1.6 10.244.2.8', '10.244.1.6 10.244.2.8'])
      if (!hasFailed) break
      failed++
    }
    expect(failed).toBe(calls)
  })
})

describe('between syncs', () => {
  test('what HNS lost when it was restarted is repaired and reported', async () => {
    const backend = winkernelBackend({ ...options(hcn, 'l2bridge'), checkIntervalMs: 20 })
    const own = new FakeCore(backend).set(web('10.244.1.5'))
    const repaired = vi.fn()
    if (backend.observations) backend.observations.listener = { repaired }
    await own.sync()
    hcn.balancers.clear()
    await expect.poll(() => hcn.balancers.size, { timeout: 20_000 }).toBe(2)
    await expect.poll(() => repaired.mock.calls, { timeout: 20_000 }).toEqual([[['default/web']]])
    await own.stop()
  })

  test('a network that was made again, with other IDs, is served', async () => {
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    hcn.networksById.clear()
    hcn.endpoints.clear()
    await expect(core.set(web('10.244.1.5')).sync()).rejects.toThrow('There is no HNS network cbr0')
    await makeNetwork(hcn, 'l2bridge')
    await core.sync()
    expect(endpointCounts()).toEqual([1, 1])
  })
})

describe('the backend', () => {
  test('shows what HNS holds, and what it refuses', async () => {
    const backend = winkernelBackend(options(hcn, 'l2bridge'))
    const own = new FakeCore(backend).set(web('10.244.1.5', '10.244.2.7'))
    hcn.faults = [{ call: 'createLoadBalancer', code: 0x803b000d, times: 1 }]
    await own.sync()
    expect(backend.observations?.failures?.()).toEqual(
      new Map([['10.96.0.10:80/tcp', 'createLoadBalancer failed with 0x803b000d: injected']]),
    )
    const frontend = {
      kind: 'loadBalancerIP',
      family: 'IPv4',
      address: '203.0.113.9',
      protocol: 'tcp',
      port: 80,
    } as const
    const held = await backend.held?.(frontend)
    expect(held?.outside.toSorted()).toEqual(['10.244.1.5:8080', '10.244.2.7:8080'])
    expect(await backend.held?.({ ...frontend, port: 81 })).toBeUndefined()
    expect(await backend.hasRules?.()).toBe(true)
    await own.stop()
  })

  test.each(['l2bridge', 'overlay'] as const)('cleanup leaves what the network plug-in made (%s)', async (type) => {
    await fresh(type)
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    await winkernelBackend(options(hcn, type)).cleanup()
    expect([hcn.balancers.size, hcn.endpoints.size, hcn.networksById.size]).toEqual([0, podEndpoints, 1])
  })

  test('cleanup without a network name removes the load balancers, and asks for no network', async () => {
    await core.set(web('10.244.1.5', '10.244.2.7')).sync()
    hcn.calls = []
    await winkernelBackend({ ...options(hcn, 'l2bridge'), networkName: '' }).cleanup()
    expect([hcn.balancers.size, hcn.endpoints.size]).toEqual([0, podEndpoints + 1])
    expect(hcn.calls).not.toContain('networkNamed')
  })

  test.each([
    [{ Major: 9, Minor: 1 }, {}, 'HNS 9.1 is too old'],
    [{ Major: 10, Minor: 1 }, { enableDsr: true }, 'HNS 10.1 has no direct server return'],
    [{ Major: 12, Minor: 0 }, { networkName: '' }, 'The HNS network of the pods is not known'],
  ])('HNS %o with %o: %s', async (version, more, message) => {
    hcn.hnsVersion = version
    const backend = winkernelBackend({ ...options(hcn, 'l2bridge'), ...more })
    await expect(backend.setup({ requestFullSync: () => {} })).rejects.toThrow(message)
  })

  test('an overlay network needs a source VIP', async () => {
    await fresh('overlay')
    await core.stop()
    core = start(hcn, 'overlay', { sourceVip: '' })
    await expect(core.sync()).rejects.toThrow('needs a source VIP')
  })

  test('needs Windows, which is said before a missing network name', async () => {
    await expect(
      winkernelBackend({ networkName: process.platform === 'win32' ? 'cbr0' : '' }).setup({
        requestFullSync: () => {},
      }),
    ).rejects.toThrow(process.platform === 'win32' ? '' : 'needs Windows')
  })

  test('says what HNS cannot do', async () => {
    const warned: unknown[] = []
    const log = {
      error() {},
      warn: (_: string, fields: unknown) => warned.push(fields),
      info() {},
      detail() {},
      shows: () => false,
    }
    hcn.hnsVersion = { Major: 10, Minor: 1 }
    await core.stop()
    core = start(hcn, 'l2bridge', { log })
    const ports = [tcp(80, { nodePort: 30080 })]
    const affinity = { sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } } } as const
    await core.set({ ...web('10.244.1.5'), ...affinity, ports, externalTrafficToLocal: true }).sync()
    expect(warned).toContainEqual({
      service: 'default/web',
      reason: 'IPv4 node port 30080/tcp: this version of HNS does not support externalTrafficPolicy Local',
    })
    expect(warned).toContainEqual({
      service: 'default/web',
      reason: '10.96.0.10:80/tcp: this version of HNS does not support sessionAffinity ClientIP',
    })
  })
})
