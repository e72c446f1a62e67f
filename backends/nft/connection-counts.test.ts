import { describe, expect, test } from 'vitest'
import { ips, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { parseAddress } from './address.js'
import { ConnectionTotals, type Packets } from './connection-totals.js'
import { nodePortKey, type Protocol, serviceKey } from './element.js'
import type { SetPath } from './names.js'
import { packetsIn } from './nft-writer.js'

const bytes = (text: string) => parseAddress(text)?.bytes ?? ''
const key = (address: string, protocol: Protocol, port: number) => serviceKey(bytes(address), protocol, port)

const { services } = view([
  {
    name: 'web',
    ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') },
    ports: [tcp(80, { nodePort: 30080 }), udp(80, { nodePort: 30080 })],
  },
])
const ownerOf = () => 'default/web'

type Read = readonly (readonly [path: SetPath, key: string, packets: number])[]

function setsOf(read: Read): Map<SetPath, Packets> {
  const sets = new Map<SetPath, Map<string, number>>()
  for (const [path, key, packets] of read) sets.set(path, (sets.get(path) ?? new Map()).set(key, packets))
  return sets
}

const web = ['ip counted', key('10.96.0.1', 'tcp', 80)] as const
const web6 = ['ip6 counted', key('fd00:96::1', 'tcp', 80)] as const
const nodePort = ['ip counted-node-ports', nodePortKey('tcp', 30080)] as const
const overUdp = ['ip counted-node-ports', nodePortKey('udp', 30080)] as const

describe('totals by service port', () => {
  test.each<[string, Read[], object]>([
    ['nothing', [[]], {}],
    ['an idle service', [[[...web, 0]]], { 'tcp-80': 0 }],
    [
      'all its addresses, both families, its node port',
      [
        [
          [...web, 1],
          [...web6, 2],
          [...nodePort, 4],
        ],
      ],
      { 'tcp-80': 7 },
    ],
    [
      'protocols apart',
      [
        [
          [...nodePort, 4],
          [...overUdp, 8],
        ],
      ],
      { 'tcp-80': 4, 'udp-80': 8 },
    ],
    ['read again', [[[...web, 3]], [[...web, 5]]], { 'tcp-80': 5 }],
    ['a counter that began anew', [[[...web, 5]], [[...web, 2]]], { 'tcp-80': 7 }],
    [
      'an address that went: what was counted stays',
      [
        [
          [...web, 5],
          [...web6, 3],
        ],
        [[...web, 6]],
      ],
      { 'tcp-80': 9 },
    ],
    ['a service that went', [[[...web, 5]], []], {}],
    ['a port that no service has', [[['ip counted', key('10.96.0.1', 'tcp', 81), 3]]], {}],
  ])('%s', (_, reads, expected) => {
    const totals = new ConnectionTotals()
    const last = reads.map((read) => totals.update(setsOf(read), services, ownerOf)).at(-1) ?? []
    expect(Object.fromEntries(last.map(({ port, connections }) => [port, connections]))).toEqual(expected)
    for (const { namespace, service } of last) expect([namespace, service]).toEqual(['default', 'web'])
  })

  test('a key that changes its owner counts for the new one from then on', () => {
    const two = view([{ name: 'a' }, { name: 'b' }]).services
    const totals = new ConnectionTotals()
    totals.update(setsOf([[...web, 5]]), two, () => 'default/a')
    expect(totals.update(setsOf([[...web, 7]]), two, () => 'default/b')).toEqual([
      { namespace: 'default', service: 'b', port: 'tcp-80', connections: 2 },
    ])
  })
})

test('the counters in what nft lists', () => {
  const elem = [
    { elem: { val: { concat: ['10.96.0.1', 'tcp', 80] }, counter: { packets: 5, bytes: 300 } } },
    { concat: ['10.96.0.2', 'tcp', 80] },
  ]
  const set = { family: 'ip', name: 'counted', table: 'kpng', elem }
  expect(packetsIn({ nftables: [{ metainfo: {} }, { set }] })).toEqual(new Map([[key('10.96.0.1', 'tcp', 80), 5]]))
})
