import { FrontendTable, frontendId } from '@kpng/dataplane'
import { describe, expect, it } from 'vitest'
import { fateOf, isPortal, type Portal, servicePortName } from './portal.js'
import { endpoint, everywhere, SCTP, service, TCP } from './testing/cluster.js'
import { recordingLog } from './testing/peers.js'

const port = { name: 'http', protocol: TCP, port: 80, nodePort: 30080, targetPort: 8080 }
const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const

/** The portals of one Service, and what was logged. */
function portals(init: Parameters<typeof service>[1], endpoints: ReturnType<typeof endpoint>[] = []) {
  const { lines, log } = recordingLog()
  const table = new FrontendTable({}, log)
  const services = new Map([['default/web', { service: service('web', init), endpoints }]])
  const view = { nodeName: 'node', node: undefined, services, serviceCidrs: new Map() }
  table.apply(view, { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }, machine)
  return { found: [...table.all()].filter(isPortal), reasons: lines.map(({ fields }) => fields.reason) }
}

describe('portals of a service', () => {
  it('one for each address and one for the node port of each family', () => {
    const { found } = portals({
      ips: {
        clusterIps: { v4: ['10.96.0.1'], v6: ['FD96::1'] },
        externalIps: { v4: ['198.51.100.1', '198.51.100.2'] },
        loadBalancerIps: { v4: ['198.51.100.2'] },
        loadBalancerProxyIps: { v4: ['198.51.100.3'] },
      },
      ports: [port],
      ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }],
    })
    const lines = found.map((portal) => [
      portal.kind,
      frontendId(portal),
      portal.allowedSources?.map(({ text }) => text),
    ])
    expect(lines.sort()).toEqual([
      ['clusterIP', '10.96.0.1:80/tcp', undefined],
      ['clusterIP', '[fd96::1]:80/tcp', undefined],
      ['externalIP', '198.51.100.1:80/tcp', undefined],
      ['loadBalancerIP', '198.51.100.2:80/tcp', ['10.0.0.0/8']],
      ['nodePort', 'IPv4 node port 30080/tcp', undefined],
      ['nodePort', 'IPv6 node port 30080/tcp', undefined],
    ])
  })

  it('a node port without cluster IPs is open in both families', () => {
    expect(portals({ ips: {}, ports: [port] } as never).found.map(frontendId)).toEqual([
      'IPv4 node port 30080/tcp',
      'IPv6 node port 30080/tcp',
    ])
  })

  it.each([
    ['of one family leave the other open, as in kube-proxy', ['10.0.0.0/8'], [['10.0.0.0/8'], undefined]],
    ['that are not there at all let nobody in', [], [[], []]],
    ['that cannot be read shut the family without others', ['10.0.0.0/8', 'x'], [['10.0.0.0/8'], []]],
  ])('source ranges %s', (_, sourceRanges, expected) => {
    const loadBalancerIps = { v4: ['198.51.100.1'], v6: ['2001:db8::1'] }
    for (const targetIps of [undefined, loadBalancerIps]) {
      const { found } = portals({
        ips: { clusterIps: {}, loadBalancerIps },
        ports: [{ ...port, nodePort: 0 }],
        ipFilters: [{ ...(targetIps && { targetIps }), sourceRanges }],
      })
      expect(found.map((portal) => portal.allowedSources?.map(({ text }) => text))).toEqual(expected)
    }
  })

  it('what cannot be served is told and left out, the rest goes on', () => {
    const { found, reasons } = portals({
      ips: { clusterIps: { v4: ['10.96.0.1', '10.96.0.1 ', 'None'] } },
      ports: [port, { ...port, name: 'sctp', protocol: SCTP }, { ...port, name: 'zero', port: 0, nodePort: 70_000 }],
    })
    expect(found.map(frontendId)).toEqual(['10.96.0.1:80/tcp', 'IPv4 node port 30080/tcp'])
    expect(reasons).toEqual([
      '"10.96.0.1 " is not an IPv4 address',
      '"None" is not an IPv4 address',
      'port "zero" has no usable protocol or number',
    ])
  })

  it('names service ports as Kubernetes does', () => {
    const names = portals({ ports: [port, { ...port, name: '', port: 81, nodePort: 0 }] }).found.map(servicePortName)
    expect([...new Set(names)]).toEqual(['default/web:http', 'default/web'])
  })
})

describe('which endpoints, and what becomes of clients', () => {
  const none = { internal: false, external: false, cluster: false }
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
    ['an unsafe address', {}, [endpoint('169.254.169.254')], ['', '', ''], 'refuse refuse refuse'],
    ['nothing', {}, [], ['', '', ''], 'refuse refuse refuse'],
    [
      'external Local, none here',
      { externalTrafficToLocal: true },
      [endpoint('10.0.0.1', undefined, { scopes: { ...everywhere, external: false } })],
      [a, a, ''],
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
      {
        internalTrafficToLocal: true,
        externalTrafficToLocal: true,
        ports: [{ ...port, servedFamilies: { v4: true } }],
      },
      [endpoint('10.0.0.1', undefined, { scopes: none })],
      ['', '', ''],
      'drop refuse drop',
    ],
    [
      'both Local, none anywhere',
      {
        internalTrafficToLocal: true,
        externalTrafficToLocal: true,
        ports: [{ ...port, servedFamilies: { v4: false } }],
      },
      [],
      ['', '', ''],
      'refuse refuse refuse',
    ],
  ] as const)('%s', (_name, init, endpoints, lists, fates) => {
    const { found } = portals({ ports: [port], ...(init as object) }, [...endpoints])
    const [clusterIp, nodePort] = ['clusterIP', 'nodePort'].map((kind) => found.find((portal) => portal.kind === kind))
    // Cluster IP; node port from inside; node port from outside.
    const audiences = [(clusterIp as Portal).inside, (nodePort as Portal).inside, (nodePort as Portal).outside]
    expect(audiences.map((audience) => audience.endpoints.map(({ ip, port }) => `${ip}:${port}`).join(' '))).toEqual(
      lists,
    )
    expect(audiences.map(fateOf).join(' ')).toBe(fates)
  })
})
