import type { MessageInitShape } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import type { EndpointRecord } from '../store/index.js'
import { endpoint, service } from '../testing/objects.js'
import { Scope, selectEndpoints } from './selection.js'

const here = { name: 'node-a', zone: 'zone-a' }

/** `10.0.0.1: internal external cluster local`, or `10.0.0.2: - reason`. */
function outcome(
  init: MessageInitShape<typeof localv1.ServiceSchema>,
  endpoints: readonly EndpointRecord[],
  node = here,
): string[] {
  const { used, leftOut } = selectEndpoints(service('web', init), endpoints, node)
  const address = (record: EndpointRecord) => [...record.v4, ...record.v6].join()
  const lines = [
    ...used.map(({ endpoint, scopes, local }) => {
      const words = Object.entries(Scope)
        .filter(([, bit]) => scopes & bit)
        .map(([name]) => name)
      return `${address(endpoint)}: ${words.join(' ')}${local ? ' local' : ''}`
    }),
    ...leftOut.map(({ endpoint, reason }) => `${address(endpoint)}: - ${reason}`),
  ]
  return lines.sort()
}

const all = 'internal external cluster'
const nodePort = {
  ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, nodePort: 30080, targetPort: 8080 }],
}

interface Row {
  readonly name: string
  readonly service?: MessageInitShape<typeof localv1.ServiceSchema>
  readonly endpoints: readonly EndpointRecord[]
  readonly node?: { name: string; zone: string }
  readonly expect: readonly string[]
}

const rows: { [group: string]: Row[] } = {
  'conditions (checklist 23-26)': [
    {
      name: 'missing conditions mean ready and serving',
      endpoints: [endpoint('10.0.0.1')],
      expect: [`10.0.0.1: ${all}`],
    },
    {
      name: 'an endpoint that is not ready is left out',
      endpoints: [endpoint('10.0.0.1'), endpoint('10.0.0.2', { ready: false })],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - not-ready'],
    },
    {
      name: 'a terminating endpoint is not used while another is ready',
      endpoints: [endpoint('10.0.0.1'), endpoint('10.0.0.2', { ready: false, serving: true, terminating: true })],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - terminating'],
    },
    {
      name: 'serving and terminating endpoints stand in when none is ready',
      endpoints: [
        endpoint('10.0.0.1', { ready: false, serving: true, terminating: true }),
        endpoint('10.0.0.2', { ready: false, serving: false, terminating: true }),
        endpoint('10.0.0.3', { ready: false }),
      ],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - not-ready', '10.0.0.3: - not-ready'],
    },
    {
      name: 'ready although terminating (publishNotReadyAddresses) is ready',
      endpoints: [endpoint('10.0.0.1', { ready: true, terminating: true })],
      expect: [`10.0.0.1: ${all}`],
    },
    {
      name: 'the fallback is decided for the local set and the cluster set separately',
      service: { ...nodePort, externalTrafficToLocal: true },
      endpoints: [
        endpoint('10.0.0.1', { node: 'node-b' }),
        endpoint('10.0.0.2', { node: 'node-a', ready: false, serving: true, terminating: true }),
      ],
      expect: ['10.0.0.1: internal cluster', '10.0.0.2: external local'],
    },
  ],
  'hints (checklist 27-30)': [
    {
      name: 'zone hints are followed when every ready endpoint has them and one is for this zone',
      endpoints: [endpoint('10.0.0.1', { zones: ['zone-a'] }), endpoint('10.0.0.2', { zones: ['zone-b'] })],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - hints-other-zone'],
    },
    {
      name: 'one ready endpoint without hints: all are used',
      endpoints: [endpoint('10.0.0.1', { zones: ['zone-a'] }), endpoint('10.0.0.2')],
      expect: [`10.0.0.1: ${all}`, `10.0.0.2: ${all}`],
    },
    {
      name: 'an endpoint without hints that is not ready does not matter',
      endpoints: [
        endpoint('10.0.0.1', { zones: ['zone-a'] }),
        endpoint('10.0.0.2', { zones: ['zone-b'] }),
        endpoint('10.0.0.3', { ready: false }),
      ],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - hints-other-zone', '10.0.0.3: - not-ready'],
    },
    {
      name: 'no hint for this zone: all are used',
      endpoints: [endpoint('10.0.0.1', { zones: ['zone-c'] }), endpoint('10.0.0.2', { zones: ['zone-b'] })],
      expect: [`10.0.0.1: ${all}`, `10.0.0.2: ${all}`],
    },
    {
      name: 'a node without a zone uses all',
      endpoints: [endpoint('10.0.0.1', { zones: ['zone-a'] }), endpoint('10.0.0.2', { zones: ['zone-b'] })],
      node: { name: 'nobody', zone: '' },
      expect: [`10.0.0.1: ${all}`, `10.0.0.2: ${all}`],
    },
    {
      name: 'node hints are tried before zone hints',
      endpoints: [
        endpoint('10.0.0.1', { zones: ['zone-a'], nodes: ['node-a'] }),
        endpoint('10.0.0.2', { zones: ['zone-a'], nodes: ['node-b'] }),
      ],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - hints-other-node'],
    },
    {
      name: 'no node hint for this node: zones decide',
      endpoints: [
        endpoint('10.0.0.1', { zones: ['zone-a'], nodes: ['node-c'] }),
        endpoint('10.0.0.2', { zones: ['zone-b'], nodes: ['node-b'] }),
      ],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - hints-other-zone'],
    },
    {
      name: 'hints do not narrow the local set',
      service: { ...nodePort, externalTrafficToLocal: true },
      endpoints: [
        endpoint('10.0.0.1', { zones: ['zone-a'], node: 'node-b' }),
        endpoint('10.0.0.2', { zones: ['zone-b'], node: 'node-a' }),
      ],
      expect: ['10.0.0.1: internal cluster', '10.0.0.2: external local'],
    },
    {
      name: 'when none is ready the hints of terminating endpoints do not matter',
      endpoints: [
        endpoint('10.0.0.1', { zones: ['zone-b'], ready: false, serving: true, terminating: true }),
        endpoint('10.0.0.2', { zones: ['zone-a'], ready: false, serving: true, terminating: true }),
      ],
      expect: [`10.0.0.1: ${all}`, `10.0.0.2: ${all}`],
    },
  ],
  'locality (checklist 31)': [
    {
      name: "an endpoint is local when its node's name is this node's",
      endpoints: [
        endpoint('10.0.0.1', { node: 'node-a' }),
        endpoint('10.0.0.2', { node: 'node-b' }),
        endpoint('10.0.0.3'),
      ],
      expect: [`10.0.0.1: ${all} local`, `10.0.0.2: ${all}`, `10.0.0.3: ${all}`],
    },
    {
      name: 'nothing is local for a node without a name',
      endpoints: [endpoint('10.0.0.1')],
      node: { name: '', zone: '' },
      expect: [`10.0.0.1: ${all}`],
    },
  ],
  'traffic policies (checklist 32-35)': [
    {
      name: 'internal Local: only local endpoints',
      service: { internalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.1', { node: 'node-a' }), endpoint('10.0.0.2', { node: 'node-b' })],
      expect: [`10.0.0.1: ${all} local`, '10.0.0.2: - not-local'],
    },
    {
      name: 'internal Local with none here: nothing is left',
      service: { internalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.2', { node: 'node-b' })],
      expect: ['10.0.0.2: - not-local'],
    },
    {
      name: 'internal Local, reachable from outside: others serve only that',
      service: { ...nodePort, internalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.1', { node: 'node-a' }), endpoint('10.0.0.2', { node: 'node-b' })],
      expect: [`10.0.0.1: ${all} local`, '10.0.0.2: external cluster'],
    },
    {
      name: 'external Local: only local endpoints for outside traffic, the cluster set for the short circuit',
      service: { ...nodePort, externalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.1', { node: 'node-a' }), endpoint('10.0.0.2', { node: 'node-b' })],
      expect: [`10.0.0.1: ${all} local`, '10.0.0.2: internal cluster'],
    },
    {
      name: 'both Local: others are there for the short circuit alone',
      service: { ...nodePort, externalTrafficToLocal: true, internalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.1', { node: 'node-a' }), endpoint('10.0.0.2', { node: 'node-b' })],
      expect: [`10.0.0.1: ${all} local`, '10.0.0.2: cluster'],
    },
    {
      name: 'load-balancer and external IPs are ways in from outside too',
      service: { ips: { externalIps: { v4: ['192.0.2.1'] } }, internalTrafficToLocal: true },
      endpoints: [endpoint('10.0.0.2', { node: 'node-b' })],
      expect: ['10.0.0.2: external cluster'],
    },
  ],
  'duplicates and families (checklist 12, 49)': [
    {
      name: 'one address in two slices: the one that is not terminating counts',
      endpoints: [endpoint('10.0.0.1', { ready: false, serving: true, terminating: true }), endpoint('10.0.0.1')],
      expect: ['10.0.0.1: - duplicate', `10.0.0.1: ${all}`],
    },
    ...[false, true].map((reversed) => {
      const stale = endpoint('10.0.0.1', { ready: false, podName: 'old' })
      const found = [stale, endpoint('10.0.0.1', { podName: 'new' })]
      return {
        name: `one address in two slices: the ready one counts, even if the other is listed ${reversed ? 'last' : 'first'}`,
        endpoints: reversed ? found.reverse() : found,
        expect: ['10.0.0.1: - duplicate', `10.0.0.1: ${all}`],
      }
    }),
    {
      name: 'one address in two slices: without a ready one, the one that still serves counts',
      endpoints: [
        endpoint('10.0.0.1', { ready: false, serving: false }),
        endpoint('10.0.0.1', { ready: false, serving: true, terminating: true }),
      ],
      expect: ['10.0.0.1: - duplicate', `10.0.0.1: ${all}`],
    },
    {
      name: 'families are decided each for itself',
      endpoints: [
        endpoint('10.0.0.1'),
        endpoint('10.0.0.2', { ready: false, serving: true, terminating: true }),
        endpoint('fd00::2', { ready: false, serving: true, terminating: true }),
      ],
      expect: [`10.0.0.1: ${all}`, '10.0.0.2: - terminating', `fd00::2: ${all}`],
    },
    {
      name: 'a dual-stack pod keeps both its endpoints',
      endpoints: [endpoint('10.0.0.1', { podName: 'web-1' }), endpoint('fd00::1', { podName: 'web-1' })],
      expect: [`10.0.0.1: ${all}`, `fd00::1: ${all}`],
    },
  ],
}

describe.each(Object.entries(rows))('%s', (_, group) => {
  test.each(group)('$name', ({ service = {}, endpoints, node, expect: expected }) => {
    expect(outcome(service, endpoints, node)).toEqual([...expected].sort())
  })
})

describe('ports', () => {
  const two = {
    ports: [
      { name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPortName: 'http' },
      { name: 'metrics', protocol: localv1.Protocol.TCP, port: 9090, targetPortName: 'metrics' },
    ],
  }

  test('an endpoint that serves none of the ports is left out', () => {
    expect(outcome(two, [endpoint('10.0.0.1', { ports: [{ name: 'other', port: 1 }] })])).toEqual([
      '10.0.0.1: - no-port',
    ])
  })

  test('a service without ports takes every endpoint', () => {
    expect(outcome({ ports: [] }, [endpoint('10.0.0.1', { ports: [] })])).toEqual([`10.0.0.1: ${all}`])
  })

  test('endpoints without listed ports serve by the target port of the service', () => {
    expect(outcome({}, [endpoint('10.0.0.1', { ports: undefined })])).toEqual([`10.0.0.1: ${all}`])
  })

  test('what a slice does not list is not served, though the service has a target port (checklist 11)', () => {
    expect(outcome({}, [endpoint('10.0.0.1', { ports: [] })])).toEqual(['10.0.0.1: - no-port'])
    expect(outcome({}, [endpoint('10.0.0.1', { ports: [{ name: 'other', port: 8080 }] })])).toEqual([
      '10.0.0.1: - no-port',
    ])
  })

  test('the fallback is decided port by port, and the scopes say so', () => {
    const ready = endpoint('10.0.0.1', { ports: [{ name: 'http', port: 80 }] })
    const leaving = endpoint('10.0.0.2', {
      ready: false,
      serving: true,
      terminating: true,
      ports: [
        { name: 'http', port: 80 },
        { name: 'metrics', port: 9090 },
      ],
    })
    const { used } = selectEndpoints(service('web', two), [ready, leaving], here)
    expect(used.map(({ endpoint, portScopes }) => [endpoint.v4[0], portScopes])).toEqual([
      ['10.0.0.1', undefined],
      ['10.0.0.2', [0, Scope.internal | Scope.external | Scope.cluster]],
    ])
  })

  describe('one address in two slices with other port lists (checklist 12)', () => {
    const http = { name: 'http', port: 80 }
    const metrics = { name: 'metrics', port: 9090 }
    const everything = Scope.internal | Scope.external | Scope.cluster
    const usedBy = (...endpoints: EndpointRecord[]) =>
      selectEndpoints(service('web', two), endpoints, here).used.map(({ endpoint, portScopes }) => [
        endpoint.ports?.map(({ name }) => name).join(' '),
        portScopes,
      ])

    test('is used once for the port that both have', () => {
      const narrow = endpoint('10.0.0.1', { ports: [http] })
      const wide = endpoint('10.0.0.1', { ports: [http, metrics] })
      expect(usedBy(narrow, wide)).toEqual([
        ['http', undefined],
        ['http metrics', [0, everything]],
      ])
      expect(usedBy(wide, narrow)).toEqual([['http metrics', undefined]])
      expect(outcome(two, [wide, narrow])).toEqual(['10.0.0.1: - duplicate', `10.0.0.1: ${all}`])
    })
    test('the one that is not terminating counts, port by port, even before it is ready', () => {
      const leaving = { ready: false, serving: true, terminating: true }
      const wide = endpoint('10.0.0.1', { ports: [http, metrics], ...leaving })
      const narrow = endpoint('10.0.0.1', { ports: [http], ready: false })
      for (const both of [
        [wide, narrow],
        [narrow, wide],
      ]) {
        expect(usedBy(...both)).toEqual([['http metrics', [0, everything]]])
      }
    })
    test('stays two endpoints where the port has another number in each', () => {
      const old = endpoint('10.0.0.1', { ports: [http] })
      const young = endpoint('10.0.0.1', { ports: [{ ...http, port: 8080 }] })
      expect(usedBy(old, young)).toHaveLength(2)
    })
  })

  test('more than 32 ports work', () => {
    const ports = Array.from({ length: 100 }, (_, i) => ({
      name: `p${i}`,
      protocol: 1,
      port: i + 1,
      targetPortName: `p${i}`,
    }))
    const odd = ports.filter((_, i) => i % 2 === 1).map(({ name, port }) => ({ name, port }))
    const { used, availability } = selectEndpoints(
      service('web', { ports }),
      [endpoint('10.0.0.1', { ports: odd })],
      here,
    )
    expect(used).toHaveLength(1)
    expect(availability.map(({ v4 }) => v4)).toEqual(ports.map((_, i) => i % 2 === 1))
  })
})

describe('whether anybody serves a port (telling "none here" from "none anywhere")', () => {
  const available = (endpoints: readonly EndpointRecord[], init = {}) =>
    selectEndpoints(service('web', init), endpoints, here).availability

  test('none anywhere', () => {
    expect(available([])).toEqual([{ v4: false, v6: false }])
    expect(available([endpoint('10.0.0.1', { ready: false })])).toEqual([{ v4: false, v6: false }])
  })

  test('none here, but somewhere', () => {
    const elsewhere = [endpoint('10.0.0.1', { node: 'node-b' })]
    expect(available(elsewhere, { internalTrafficToLocal: true })).toEqual([{ v4: true, v6: false }])
  })

  test('terminating endpoints that still serve count', () => {
    expect(available([endpoint('fd00::1', { ready: false, serving: true, terminating: true })])).toEqual([
      { v4: false, v6: true },
    ])
  })
})
