import { localv1 } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { conditionsOf, none } from '../store/index.js'
import { endpointsFromKubernetes } from './endpoint-slice.js'

const { TCP, UDP } = localv1.Protocol
const same = (text: string) => text
const metadata = { namespace: 'default', name: 'web-abc', labels: { 'kubernetes.io/service-name': 'web' } }
const base = { metadata, addressType: 'IPv4', ports: [{ name: 'http', port: 8080, protocol: 'TCP' }] }

function read(slice: object, intern = same) {
  const reasons: string[] = []
  const result = endpointsFromKubernetes({ ...base, ...slice }, (reason) => reasons.push(reason), intern)
  return { result, endpoints: result?.endpoints ?? [], reasons }
}

const addresses = (endpoints: readonly { v4: readonly string[]; v6: readonly string[] }[]) =>
  endpoints.map(({ v4, v6 }) => [...v4, ...v6].join())

describe('which slices', () => {
  it.each([
    ['no service-name label (checklist 4)', { metadata: { name: 'x' } }],
    [
      'an empty service-name label (checklist 4)',
      { metadata: { name: 'x', labels: { 'kubernetes.io/service-name': '' } } },
    ],
    ['FQDN (checklist 6)', { addressType: 'FQDN', endpoints: [{ addresses: ['example.com'] }] }],
  ])('%s: ignored silently', (_, slice) => {
    expect(read(slice)).toMatchObject({ result: undefined, reasons: [] })
  })

  it.each([
    ['an unknown address type', { addressType: 'IPX' }],
    ['no address type', { addressType: undefined }],
    ['an odd service name', { metadata: { name: 'x', labels: { 'kubernetes.io/service-name': 'a/b' } } }],
    ['no name', { metadata: { labels: metadata.labels } }],
  ])('%s: ignored with a reason', (_, slice) => {
    const { result, reasons } = read(slice)
    expect(result).toBeUndefined()
    expect(reasons).toHaveLength(1)
  })

  it('names the slice, the service and the namespace', () => {
    expect(read({}).result).toEqual({
      namespace: 'default',
      name: 'web-abc',
      service: 'web',
      endpoints: [],
      triggerUnixMs: undefined,
    })
  })
})

describe('endpoints', () => {
  it('takes everything that kpng uses', () => {
    const { endpoints, reasons } = read({
      endpoints: [
        {
          addresses: ['10.0.0.1', '10.0.0.9'],
          hostname: 'web-0',
          nodeName: 'node-1',
          zone: 'a',
          targetRef: { kind: 'Pod', name: 'web-0-xyz' },
          hints: { forZones: [{ name: 'b' }, { name: 'a' }, { name: 'b' }], forNodes: [{ name: 'node-2' }] },
          conditions: { ready: false, serving: true, terminating: true },
        },
      ],
    })
    expect(endpoints).toEqual([
      {
        podName: 'web-0-xyz',
        hostname: 'web-0',
        v4: ['10.0.0.1'],
        v6: [],
        ports: [{ name: 'http', port: 8080, protocol: TCP }],
        node: 'node-1',
        zone: 'a',
        hints: { zones: ['a', 'b'], nodes: ['node-2'] },
        conditions: { ready: false, serving: true, terminating: true },
      },
    ])
    expect(reasons).toEqual([])
  })

  it('each family to its own (checklist 6), in canonical text', () => {
    expect(read({ addressType: 'IPv6', endpoints: [{ addresses: ['FD00:0::1'] }] }).endpoints[0]).toMatchObject({
      v4: [],
      v6: ['fd00::1'],
    })
    expect(read({ endpoints: [{ addresses: ['10.0.0.1'] }] }).endpoints[0]).toMatchObject({ v4: ['10.0.0.1'], v6: [] })
  })

  it.each([
    [
      'a bad address',
      { addresses: ['010.0.0.1'] },
      'endpoints[0].addresses[0] is "010.0.0.1"; an IPv4 address was expected',
    ],
    ['the other family', { addresses: ['fd00::1'] }, 'is "fd00::1"; an IPv4 address was expected'],
    ['no address', { addresses: [] }, 'is missing'],
    ['no addresses field', {}, 'is missing'],
    ['no map', 'x', 'endpoints[0] is "x"; a map was expected'],
  ])('%s is skipped with a reason, the next one stays (checklist 11)', (_, bad, reason) => {
    const { endpoints, reasons } = read({ endpoints: [bad, { addresses: ['10.0.0.2'] }] })
    expect(addresses(endpoints)).toEqual(['10.0.0.2'])
    expect(reasons[0]).toContain(reason)
  })

  it.each([
    ['nothing said', undefined, true, true, false],
    ['all nil', { ready: null, serving: null, terminating: null }, true, true, false],
    ['not ready', { ready: false }, false, true, false],
    ['not serving', { ready: false, serving: false }, false, false, false],
    ['terminating', { ready: false, serving: true, terminating: true }, false, true, true],
  ])('conditions (checklist 23, 26): %s', (_, conditions, ready, serving, terminating) => {
    const [endpoint] = read({ endpoints: [{ addresses: ['10.0.0.1'], conditions }] }).endpoints
    expect(endpoint?.conditions).toBe(conditionsOf({ ready, serving, terminating }))
  })

  it.each([
    ['none', undefined, undefined],
    ['empty', {}, undefined],
    ['zones (checklist 27)', { forZones: [{ name: 'a' }] }, { zones: ['a'], nodes: [] }],
    ['nodes (checklist 28)', { forNodes: [{ name: 'n' }] }, { zones: [], nodes: ['n'] }],
  ])('hints: %s', (_, hints, expected) => {
    expect(read({ endpoints: [{ addresses: ['10.0.0.1'], hints }] }).endpoints[0]?.hints).toEqual(expected)
  })

  it.each([
    ['the first stays', {}, { nodeName: 'second' }, ''],
    [
      'the one that is not terminating wins (checklist 12)',
      { conditions: { terminating: true } },
      { nodeName: 'second' },
      'second',
    ],
    [
      'the ready one wins over one that is not, though neither is terminating',
      { conditions: { ready: false } },
      { nodeName: 'second' },
      'second',
    ],
  ])('one address twice: %s', (_, first, second, node) => {
    const { endpoints, reasons } = read({
      endpoints: [
        { addresses: ['10.0.0.1'], ...first },
        { addresses: ['10.0.0.1'], ...second },
      ],
    })
    expect(endpoints.map((endpoint) => endpoint.node)).toEqual([node])
    expect(reasons).toHaveLength(1)
  })

  it('takes the pod from a targetRef of kind Pod only, and no odd name', () => {
    const refs = [
      { kind: 'VM', name: 'x' },
      { kind: 'Pod', name: 'a/b' },
      { kind: 'Pod', name: 'web-1' },
    ]
    const { endpoints, reasons } = read({
      endpoints: refs.map((targetRef, index) => ({ addresses: [`10.0.0.${index}`], targetRef })),
    })
    expect(endpoints.map(({ podName }) => podName)).toEqual(['', '', 'web-1'])
    expect(reasons).toHaveLength(1)
  })
})

describe('ports', () => {
  it.each([
    [
      'by name (checklist 19)',
      [
        { name: 'a', port: 1 },
        { name: 'b', port: 2, protocol: 'UDP' },
      ],
      [
        { name: 'a', port: 1, protocol: TCP },
        { name: 'b', port: 2, protocol: UDP },
      ],
      0,
    ],
    ['nil name is the empty one', [{ port: 1 }, { name: null, port: 2 }], [{ name: '', port: 1, protocol: TCP }], 1],
    [
      'nil and 0 (checklist 11)',
      [{ name: 'a' }, { name: 'b', port: 0 }, { name: 'c', port: null }, { name: 'd', port: 4 }],
      [{ name: 'd', port: 4, protocol: TCP }],
      3,
    ],
    ['unknown protocol', [{ name: 'a', port: 1, protocol: 'X' }], [], 1],
    [
      'the same name twice',
      [
        { name: 'a', port: 1 },
        { name: 'a', port: 2 },
      ],
      [{ name: 'a', port: 1, protocol: TCP }],
      1,
    ],
    ['none', null, [], 0],
  ])('%s', (_, ports, expected, complaints) => {
    const { endpoints, reasons } = read({ ports, endpoints: [{ addresses: ['10.0.0.1'] }] })
    expect(endpoints[0]?.ports).toEqual(expected)
    expect(reasons).toHaveLength(complaints)
  })
})

describe('lean records', () => {
  it('share ports, hints, conditions and nothing', () => {
    const one = { hints: { forZones: [{ name: 'a' }, { name: 'b' }] } }
    const two = { hints: { forZones: [{ name: 'b' }, { name: 'a' }] } }
    const [a, b] = read({
      endpoints: [
        { addresses: ['10.0.0.1'], ...one },
        { addresses: ['10.0.0.2'], ...two },
      ],
    }).endpoints
    expect(a?.ports).toBe(b?.ports)
    expect(a?.hints).toBe(b?.hints)
    expect(a?.hints).toBeDefined()
    expect(a?.conditions).toBe(b?.conditions)
    expect(a?.v6).toBe(none)
    expect(read({ endpoints: [] }).endpoints).toBe(none)
  })

  it('node, zone and hint names go through intern', () => {
    const seen: string[] = []
    read(
      { endpoints: [{ addresses: ['10.0.0.1'], nodeName: 'n', zone: 'z', hints: { forZones: [{ name: 'h' }] } }] },
      (text) => {
        seen.push(text)
        return text
      },
    )
    expect(seen).toEqual(expect.arrayContaining(['n', 'z', 'h']))
  })
})

describe('trigger time (checklist 78)', () => {
  it.each([
    [undefined, undefined, 0],
    ['2026-01-02T03:04:05.123456789Z', Date.UTC(2026, 0, 2, 3, 4, 5, 123), 0],
    ['2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5), 0],
    ['2026-01-02T03:04:05.5+02:00', Date.UTC(2026, 0, 2, 1, 4, 5, 500), 0],
    ['yesterday', undefined, 1],
    ['2026-13-02T03:04:05Z', undefined, 1],
  ])('%s', (time, unixMs, complaints) => {
    const annotations = time === undefined ? {} : { 'endpoints.kubernetes.io/last-change-trigger-time': time }
    const { result, reasons } = read({ metadata: { ...metadata, annotations } })
    expect(result?.triggerUnixMs).toBe(unixMs)
    expect(reasons).toHaveLength(complaints)
  })
})
