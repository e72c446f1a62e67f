import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { expect, it } from 'vitest'
import { portsOf } from './service.js'

const { TCP, UDP, SCTP } = localv1.Protocol

function read(ports: unknown) {
  const reasons: string[] = []
  return { ports: portsOf({ ports }, (reason) => reasons.push(reason)), reasons }
}

it.each([
  ['missing protocol and target', [{ port: 80 }], [{ protocol: TCP, port: 80, targetPort: 80 }]],
  [
    'target by number',
    [{ name: 'http', port: 80, targetPort: 8080 }],
    [{ name: 'http', protocol: TCP, port: 80, targetPort: 8080 }],
  ],
  [
    'target by name (checklist 19)',
    [{ port: 80, targetPort: 'web' }],
    [{ protocol: TCP, port: 80, targetPortName: 'web' }],
  ],
  [
    'node port (checklist 15)',
    [{ port: 80, nodePort: 30080 }],
    [{ protocol: TCP, port: 80, nodePort: 30080, targetPort: 80 }],
  ],
  ['no node port (checklist 48)', [{ port: 80, nodePort: 0 }], [{ protocol: TCP, port: 80, targetPort: 80 }]],
  ['SCTP (checklist 52)', [{ port: 80, protocol: 'SCTP' }], [{ protocol: SCTP, port: 80, targetPort: 80 }]],
  [
    'one number on TCP and UDP (checklist 18)',
    [
      { name: 'dns-tcp', port: 53 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
    [
      { name: 'dns-tcp', protocol: TCP, port: 53, targetPort: 53 },
      { name: 'dns', protocol: UDP, port: 53, targetPort: 53 },
    ],
  ],
])('%s', (_, given, expected) => {
  const { ports, reasons } = read(given)
  expect(ports).toEqual(expected.map((port) => create(localv1.PortMappingSchema, port)))
  expect(reasons).toEqual([])
})

it.each([
  ['port 0', { name: 'x', port: 0 }, 'spec.ports[0].port is 0; a port is 1 to 65535. The port is left out.'],
  ['no port', { name: 'x' }, 'spec.ports[0].port is undefined; a port is 1 to 65535. The port is left out.'],
  ['port 65536', { name: 'x', port: 65_536 }, 'spec.ports[0].port is 65536'],
  ['half a port', { name: 'x', port: 1.5 }, 'spec.ports[0].port is 1.5'],
  ['a text', { name: 'x', port: '81' }, 'spec.ports[0].port is "81"'],
  [
    'unknown protocol',
    { name: 'x', port: 81, protocol: 'ICMP' },
    'spec.ports[0].protocol is "ICMP"; TCP, UDP or SCTP was expected',
  ],
  ['no map', 81, 'spec.ports[0] is 81; a map was expected'],
])('%s is skipped with a reason, the next port stays (checklist 11)', (_, bad, reason) => {
  const { ports, reasons } = read([bad, { name: 'good', port: 80 }])
  expect(ports.map(({ name }) => name)).toEqual(['good'])
  expect(reasons[0]).toContain(reason)
})

it.each([
  ['name', { name: 'a', port: 81 }, 'has the name "a" of an earlier port'],
  ['number', { name: 'b', port: 80 }, 'is port 80 of the same protocol as an earlier one'],
])('a second port of the same %s is skipped', (_, second, reason) => {
  const { ports, reasons } = read([{ name: 'a', port: 80 }, second])
  expect(ports.map(({ name, port }) => [name, port])).toEqual([['a', 80]])
  expect(reasons).toEqual([expect.stringContaining(`spec.ports[1] ${reason}`)])
})

it.each([
  ['nodePort', { port: 80, nodePort: 70_000 }, { nodePort: 0, targetPort: 80 }],
  ['targetPort', { port: 80, targetPort: -1 }, { targetPort: 80 }],
])('a bad %s costs only itself', (_, given, expected) => {
  const { ports, reasons } = read([given])
  expect(ports[0]).toMatchObject(expected)
  expect(reasons).toHaveLength(1)
})
