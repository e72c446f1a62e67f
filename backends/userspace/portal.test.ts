import { silentLog } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { portalAddress, portalsOfPort, servicePortName } from './portal.js'
import { endpoint, everywhere, SCTP, service, TCP } from './testing/cluster.js'
import { recordingLog } from './testing/peers.js'
import { endpointsByScope, fatesOf } from './usable-endpoints.js'

const port = { name: 'http', protocol: TCP, port: 80, nodePort: 30080, targetPort: 8080 }

const portals = (init: Parameters<typeof service>[1], log = silentLog) => {
  const message = service('web', init)
  return message.ports.flatMap((mapping) => portalsOfPort(message, mapping, log))
}

describe('portals of a service', () => {
  it('one for each address and one for the node port of each family', () => {
    const found = portals({
      ips: {
        clusterIps: { v4: ['10.96.0.1'], v6: ['FD96::1'] },
        externalIps: { v4: ['198.51.100.1', '198.51.100.2'] },
        loadBalancerIps: { v4: ['198.51.100.2'] },
        loadBalancerProxyIps: { v4: ['198.51.100.3'] },
      },
      ports: [port],
      ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }],
    })
    expect(found.map((portal) => [portal.kind, portalAddress(portal), portal.sourceRanges?.cidrs])).toEqual([
      ['cluster-ip', '10.96.0.1:80/tcp', undefined],
      ['cluster-ip', '[fd96::1]:80/tcp', undefined],
      ['load-balancer-ip', '198.51.100.2:80/tcp', ['10.0.0.0/8']],
      ['external-ip', '198.51.100.1:80/tcp', undefined],
      ['node-port', '0.0.0.0:30080/tcp', undefined],
      ['node-port', '[::]:30080/tcp', undefined],
    ])
  })

  it('source ranges for named targets guard those only; ranges that cannot be read let nobody in', () => {
    const { lines, log } = recordingLog()
    const found = portals(
      {
        ips: { clusterIps: {}, externalIps: { v4: ['198.51.100.1', '198.51.100.2'] } },
        ports: [{ ...port, nodePort: 0 }],
        ipFilters: [{ targetIps: { v4: ['198.51.100.2'] }, sourceRanges: ['oops'] }],
      },
      log,
    )
    expect(found.map(({ sourceRanges }) => sourceRanges?.cidrs)).toEqual([undefined, []])
    expect(lines[0]?.message).toBe('A source range that is not a CIDR lets nobody in')
  })

  it.each([
    ['of one family leave the other open, as in kube-proxy', ['10.0.0.0/8'], [['10.0.0.0/8'], undefined]],
    ['that are not there at all let nobody in', [], [[], []]],
    ['that cannot be read shut the family without others', ['10.0.0.0/8', 'x'], [['10.0.0.0/8'], []]],
  ])('source ranges %s', (_, sourceRanges, expected) => {
    const loadBalancerIps = { v4: ['198.51.100.1'], v6: ['2001:db8::1'] }
    for (const targetIps of [undefined, loadBalancerIps]) {
      const found = portals({
        ips: { clusterIps: {}, loadBalancerIps },
        ports: [{ ...port, nodePort: 0 }],
        ipFilters: [{ ...(targetIps && { targetIps }), sourceRanges }],
      })
      expect(found.map((portal) => portal.sourceRanges?.cidrs)).toEqual(expected)
    }
  })

  it('what cannot be proxied is told and left out, the rest goes on', () => {
    const { lines, log } = recordingLog()
    const found = portals(
      {
        ips: { clusterIps: { v4: ['10.96.0.1', '10.96.0.1 ', 'None'] } },
        ports: [port, { ...port, name: 'sctp', protocol: SCTP }, { ...port, name: 'zero', port: 0, nodePort: 70_000 }],
      },
      log,
    )
    expect(found.map(portalAddress)).toEqual(['10.96.0.1:80/tcp', '0.0.0.0:30080/tcp'])
    expect(lines.map(({ message }) => message)).toEqual([
      'Skipping a service address that is not an IP address',
      'Skipping a service address that is not an IP address',
      'Skipping a service port: user space proxies TCP and UDP only',
      'Skipping a portal: its port is out of range',
      'Skipping a service address that is not an IP address',
      'Skipping a service address that is not an IP address',
      'Skipping a portal: its port is out of range',
    ])
  })

  it('names service ports as Kubernetes does', () => {
    const message = service('web', { ports: [port, { ...port, name: '' }] })
    expect(message.ports.map((mapping) => servicePortName(message, mapping))).toEqual([
      'default/web:http',
      'default/web',
    ])
  })
})

describe('which endpoints, and what becomes of clients', () => {
  const none = { internal: false, external: false, cluster: false }
  const scoped = (init: Parameters<typeof service>[1], endpoints: ReturnType<typeof endpoint>[]) => {
    const message = service('web', { ports: [port], ...init })
    const mapping = message.ports[0] as (typeof message.ports)[number]
    const lists = endpointsByScope({ service: message, endpoints }, mapping, 'v4', (ip) =>
      ip === '10.0.0.9' ? 'no' : undefined,
    )
    const keys = (list: readonly { key: string }[]) => list.map(({ key }) => key).join(' ')
    return {
      lists: [keys(lists.internal), keys(lists.external), keys(lists.cluster)],
      clusterIp: fatesOf(message, mapping, 'v4', 'cluster-ip', lists),
      nodePort: fatesOf(message, mapping, 'v4', 'node-port', lists),
    }
  }
  const a = '10.0.0.1:8080'

  it.each([
    ['all scopes', {}, [endpoint('10.0.0.1')], [a, a, a], 'forward forward forward'],
    [
      'a port of its own',
      {},
      [endpoint('10.0.0.1', 9000)],
      ['10.0.0.1:9000', '10.0.0.1:9000', '10.0.0.1:9000'],
      'forward forward forward',
    ],
    [
      'a server without scopes',
      {},
      [endpoint('10.0.0.1', undefined, { scopes: undefined as never })],
      [a, a, a],
      'forward forward forward',
    ],
    [
      'a server without the cluster scope',
      {},
      [endpoint('10.0.0.1', undefined, { scopes: { ...everywhere, cluster: false } })],
      [a, a, a],
      'forward forward forward',
    ],
    ['another family', {}, [endpoint('fd00::1')], ['', '', ''], 'refuse refuse refuse'],
    ['a refused address', {}, [endpoint('10.0.0.9')], ['', '', ''], 'refuse refuse refuse'],
    ['nothing', {}, [], ['', '', ''], 'refuse refuse refuse'],
    [
      'external Local, none here',
      { externalTrafficToLocal: true },
      [endpoint('10.0.0.1', undefined, { scopes: { ...everywhere, external: false } })],
      [a, '', a],
      'forward forward drop',
    ],
    [
      'internal Local, none here',
      { internalTrafficToLocal: true },
      [endpoint('10.0.0.1', undefined, { scopes: { ...everywhere, internal: false } })],
      ['', a, a],
      'drop forward forward',
    ],
    [
      'both Local, none here, some elsewhere',
      { internalTrafficToLocal: true, externalTrafficToLocal: true, ports: [{ ...port, hasEndpoints: { v4: true } }] },
      [endpoint('10.0.0.1', undefined, { scopes: none })],
      ['', '', ''],
      'drop refuse drop',
    ],
    [
      'both Local, none anywhere',
      { internalTrafficToLocal: true, externalTrafficToLocal: true, ports: [{ ...port, hasEndpoints: { v4: false } }] },
      [],
      ['', '', ''],
      'refuse refuse refuse',
    ],
  ] as const)('%s', (_name, init, endpoints, lists, fates) => {
    const found = scoped(init as Parameters<typeof service>[1], [...endpoints])
    expect(found.lists).toEqual(lists)
    // Cluster IP; node port from inside; node port from outside.
    expect(`${found.clusterIp.inside} ${found.nodePort.inside} ${found.nodePort.outside}`).toBe(fates)
  })
})
