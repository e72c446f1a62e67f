import { parseCidrs } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { expect, test } from 'vitest'
import { endpoint, ips, tcp, udp, view } from '../../../dataplane/testing/objects.js'
import { frontendKeyOf, mappedBytes } from '../layout.js'
import { entryOf, keyOf, nodeAddressEntries, whyLeftToNft } from './entry.js'
import { keyText } from './hash-table.js'

const endpoints = [endpoint('10.244.1.5 fd00:244::5', { local: true }), endpoint('10.244.2.7')]
const elsewhere = [endpoint('10.244.2.7')]
const table = FrontendTable.of(
  view([
    {
      name: 'web',
      ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1'), externalIps: ips('192.0.2.1') },
      ports: [tcp(80, { nodePort: 30080 }), udp(53)],
      endpoints,
    },
    { name: 'empty', ips: { clusterIps: ips('10.96.0.2') }, ports: [tcp(80)] },
    {
      name: 'ranges',
      ips: { clusterIps: ips('10.96.0.3'), loadBalancerIps: ips('192.0.2.3') },
      ports: [tcp(80)],
      ipFilters: [{ targetIps: ips('192.0.2.3'), sourceRanges: ['10.0.0.0/8'] }],
      endpoints,
    },
    { name: 'whole', ips: { clusterIps: ips('10.96.0.4') }, mapIp: true, endpoints },
    {
      name: 'local',
      ips: { clusterIps: ips('10.96.0.5'), loadBalancerIps: ips('192.0.2.5') },
      ports: [tcp(80)],
      externalTrafficToLocal: true,
      endpoints: elsewhere,
    },
    {
      name: 'sticky',
      ips: { clusterIps: ips('10.96.0.6') },
      ports: [tcp(80)],
      sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 60 } },
      endpoints,
    },
  ]),
)
const frontend = (id: string) => {
  const found = table.get(id)
  if (!found) throw new Error(`There is no ${id}.`)
  return found
}

test.each([
  ['10.96.0.1:80/tcp', undefined],
  ['[fd00:96::1]:80/tcp', undefined],
  ['192.0.2.1:80/tcp', undefined],
  ['IPv4 node port 30080/tcp', undefined],
  ['10.96.0.1:53/udp', 'the protocol is UDP'],
  ['10.96.0.2:80/tcp', 'it has no endpoint'],
  ['10.96.0.3:80/tcp', undefined],
  ['192.0.2.3:80/tcp', 'only some sources may connect'],
  ['10.96.0.4', 'the Service has the whole address'],
  // Pods and the node itself may use endpoints of other nodes.
  ['192.0.2.5:80/tcp', undefined],
])('%s is left to nftables: %s', (id, why) => {
  expect(whyLeftToNft(frontend(id))).toBe(why)
  expect(entryOf(frontend(id)) === undefined).toBe(why !== undefined)
})

test('an entry has the endpoints for clients inside, and the seconds of session affinity', () => {
  expect(entryOf(frontend('10.96.0.6:80/tcp'))).toMatchObject({
    key: keyText(frontendKeyOf('10.96.0.6', 80)),
    endpoints: [
      { ip: '10.244.1.5', port: 8080 },
      { ip: '10.244.2.7', port: 8080 },
    ],
    affinitySeconds: 60,
  })
  expect(entryOf(frontend('192.0.2.5:80/tcp'))?.endpoints).toMatchObject([{ ip: '10.244.2.7' }])
})

test('node ports of the two families have different keys, and no cluster IP has them', () => {
  const keys = [keyOf(frontend('IPv4 node port 30080/tcp')), keyOf(frontend('IPv6 node port 30080/tcp'))]
  expect(keys.map((key) => Buffer.from(key, 'latin1').toString('hex'))).toEqual([
    '00000000000000000000ffff0000000075800600',
    '0000000000000000000000000000000075800600',
  ])
})

const addresses = [
  ['127.0.0.1', 'IPv4'],
  ['10.0.0.1', 'IPv4'],
  ['172.17.0.1', 'IPv4'],
  ['169.254.1.1', 'IPv4'],
  ['::1', 'IPv6'],
  ['fd00::1', 'IPv6'],
  ['fe80::1', 'IPv6'],
].map(([ip = '', family]) => ({
  ...{ ip, family: family as 'IPv4' | 'IPv6' },
  isLinkLocal: /^(169\.254|fe80)/.test(ip),
}))

test.each([
  ['everywhere', ['0.0.0.0/0', '::/0'], true, ['127.0.0.1 host', '10.0.0.1', '172.17.0.1', '::1 host', 'fd00::1']],
  ['not on loopback', ['0.0.0.0/0', '::/0'], false, ['10.0.0.1', '172.17.0.1', 'fd00::1']],
  ['in a range', ['10.0.0.0/8'], true, ['10.0.0.1']],
  ['nowhere', [], true, []],
])('node ports are served %s', (_where, cidrs, servesLoopback, expected) => {
  const of = (family: string) => parseCidrs(cidrs).filter((cidr) => cidr.family === family)
  const nodePortCidrs = { IPv4: of('IPv4'), IPv6: of('IPv6') }
  const entries = nodeAddressEntries({ nodePortCidrs }, addresses, servesLoopback)
  const named = addresses.flatMap(({ ip }) => {
    const value = entries.get(keyText(mappedBytes(ip)))
    return value === undefined ? [] : [value === 1 ? `${ip} host` : ip]
  })
  expect(named).toEqual(expected)
  expect(entries.size).toBe(expected.length)
})
