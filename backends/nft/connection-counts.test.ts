import { silentLog } from '@kpng/api'
import { FrontendTable, frontendId } from '@kpng/dataplane'
import { describe, expect, test } from 'vitest'
import { change, fullSync, ips, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { ConnectionCounts } from './connection-counts.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
const service = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') },
  ports: [tcp(80, { nodePort: 30080 }), udp(80, { nodePort: 30080 })],
}

/** What was counted, by the id of the frontend. */
type Read = Readonly<Record<string, number>>

function counting(services: Parameters<typeof view>[0]) {
  const of = view(services)
  const table = new FrontendTable()
  table.apply(of, fullSync, machine)
  let read: Read = {}
  const counts = new ConnectionCounts({
    frontends: () => table.all(),
    read: async () => (frontend) => read[frontendId(frontend)],
    log: silentLog,
  })
  const count = (now: Read) => {
    read = now
    return counts.get()
  }
  return { of, table, count }
}

const web = '10.96.0.1:80/tcp'
const web6 = '[fd00:96::1]:80/tcp'
const nodePort = 'IPv4 node port 30080/tcp'
const overUdp = 'IPv4 node port 30080/udp'

describe('totals per service port', () => {
  test.each<[string, Read[], object]>([
    ['nothing', [{}], {}],
    ['an idle service', [{ [web]: 0 }], { 'tcp-80': 0 }],
    ['all its addresses, both families, its node port', [{ [web]: 1, [web6]: 2, [nodePort]: 4 }], { 'tcp-80': 7 }],
    ['each protocol for itself', [{ [nodePort]: 4, [overUdp]: 8 }], { 'tcp-80': 4, 'udp-80': 8 }],
    ['read again', [{ [web]: 3 }, { [web]: 5 }], { 'tcp-80': 5 }],
    ['a counter that began anew', [{ [web]: 5 }, { [web]: 2 }], { 'tcp-80': 7 }],
    ['an address that is gone: what was counted stays', [{ [web]: 5, [web6]: 3 }, { [web]: 6 }], { 'tcp-80': 9 }],
    ['a service that is gone', [{ [web]: 5 }, {}], {}],
    ['a port that no service has', [{ '10.96.0.1:81/tcp': 3 }], {}],
  ])('%s', async (_, reads, expected) => {
    const { count } = counting([service])
    let last: Awaited<ReturnType<typeof count>> = []
    for (const read of reads) last = await count(read)
    expect(Object.fromEntries(last.map(({ port, connections }) => [port, connections]))).toEqual(expected)
    for (const { namespace, service } of last) expect([namespace, service]).toEqual(['default', 'web'])
  })

  test('an address that gets another owner counts for the new one from then on', async () => {
    const asks = (name: string) => ({ name, ips: { externalIps: ips('192.0.2.1') } })
    const { of, table, count } = counting([asks('a'), asks('b')])
    await count({ '192.0.2.1:80/tcp': 5 })
    table.apply(of, change(of, 'a', undefined), machine)
    expect(await count({ '192.0.2.1:80/tcp': 7 })).toEqual([
      { namespace: 'default', service: 'b', port: 'tcp-80', connections: 2 },
    ])
  })

  test('if the counters cannot be read, the last totals are shown', async () => {
    const said: string[] = []
    const { table } = counting([service])
    let fails = false
    const counts = new ConnectionCounts({
      frontends: () => table.all(),
      read: async () => {
        if (fails) throw new Error('no kernel')
        return (frontend) => (frontendId(frontend) === web ? 5 : undefined)
      },
      log: { ...silentLog, warn: (message) => said.push(message) },
    })
    const before = await counts.get()
    fails = true
    expect(await counts.get()).toEqual(before)
    expect(said).toHaveLength(1)
  })
})
