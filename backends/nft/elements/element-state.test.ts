import { silentLog } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { type Elements, put, type SetPath, slotOf, type Transaction } from '@kpng/linux/nftables'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  change,
  endpoint,
  fullSync,
  ips,
  type TestService,
  tcp,
  thisNode,
  udp,
  view,
} from '../../../dataplane/testing/objects.js'
import { type NftOptions, settingsOf } from '../options.js'
import { allListKinds } from '../rules/names.js'
import { elementLines } from '../testing/element-lines.js'
import { ElementState } from './element-state.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const

function started(services: readonly TestService[], options: NftOptions = {}, log = silentLog) {
  const settings = settingsOf({ detectLocal: { mode: 'NodeCIDR' }, ...options, log })
  const of = view(services)
  const table = new FrontendTable(settings.dataplane, log)
  const state = new ElementState(settings)
  table.apply(of, fullSync, machine)
  const elements = state.rebuild(table)
  const commit = (changes: Changes): Transaction => state.change(table.apply(of, changes, machine), table)
  const apply = (name: string, after: TestService | undefined): string[] => operations(commit(change(of, name, after)))
  return { of, table, state, elements, commit, apply }
}

/** `- ip endpoints …` and `+ ip endpoints …`, as they go to the kernel. */
const operations = ({ remove, add }: Transaction): string[] => [
  ...elementLines(remove).map((line) => `- ${line}`),
  ...elementLines(add).map((line) => `+ ${line}`),
]

const pods = (...numbers: number[]) => numbers.map((number) => endpoint(`10.0.0.${number}`))
const web = (endpoints: TestService['endpoints'], init: Partial<TestService> = {}): TestService => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  endpoints: endpoints ?? [],
  ...init,
})

describe('a change costs what changed (65)', () => {
  const others = Array.from({ length: 50 }, (_, index) => ({
    name: `other-${index}`,
    ips: { clusterIps: ips(`10.96.1.${index}`) },
    endpoints: pods(1, 2, 3),
  }))
  const start = (...numbers: number[]) => started([...others, web(pods(...numbers))])

  test('an endpoint comes: one element', () => {
    expect(start(1, 2).apply('web', web(pods(1, 2, 3)))).toEqual([
      '+ ip endpoints 10.96.0.1 . tcp . 80 . 2 : 10.0.0.3 . 8080',
    ])
  })
  test('the last endpoint goes: one element', () => {
    expect(start(1, 2, 3).apply('web', web(pods(1, 2)))).toEqual([
      '- ip endpoints 10.96.0.1 . tcp . 80 . 2 : 10.0.0.3 . 8080',
    ])
  })
  test('the first endpoint goes: the last takes its slot, three elements', () => {
    expect(start(1, 2, 3).apply('web', web(pods(2, 3)))).toEqual([
      '- ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.0.0.1 . 8080',
      '- ip endpoints 10.96.0.1 . tcp . 80 . 2 : 10.0.0.3 . 8080',
      '+ ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.0.0.3 . 8080',
    ])
  })
  test('an endpoint is replaced: two elements', () => {
    expect(start(1, 2, 3).apply('web', web(pods(1, 9, 3)))).toEqual([
      '- ip endpoints 10.96.0.1 . tcp . 80 . 1 : 10.0.0.2 . 8080',
      '+ ip endpoints 10.96.0.1 . tcp . 80 . 1 : 10.0.0.9 . 8080',
    ])
  })
  test('one more than a list size: its key goes to the larger draw', () => {
    expect(start(1, 2, 3, 4).apply('web', web(pods(1, 2, 3, 4, 5)))).toEqual([
      '+ ip endpoints 10.96.0.1 . tcp . 80 . 4 : 10.0.0.5 . 8080',
      '+ ip over-4 10.96.0.1 . tcp . 80',
    ])
  })
  test('a service comes and goes: its elements and no other', () => {
    const { apply } = start(1)
    const born = apply('new', { name: 'new', ips: { clusterIps: ips('10.96.9.9') }, endpoints: pods(1, 2) })
    expect(born).toEqual([
      '+ ip cluster-ips 10.96.9.9',
      '+ ip endpoints 10.96.9.9 . tcp . 80 . 0 : 10.0.0.1 . 8080',
      '+ ip endpoints 10.96.9.9 . tcp . 80 . 1 : 10.0.0.2 . 8080',
    ])
    expect(apply('new', undefined)).toEqual(born.map((line) => line.replace('+', '-')))
  })
  test('a port that changes leaves the other ports alone (22)', () => {
    const before = web(pods(1), { ports: [tcp(80), udp(53)] })
    const { apply } = started([before])
    expect(apply('web', { ...before, ports: [tcp(81), udp(53)] })).toEqual([
      '- ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.0.0.1 . 8080',
      '+ ip endpoints 10.96.0.1 . tcp . 81 . 0 : 10.0.0.1 . 8080',
    ])
  })
  test('what does not change the elements is no operation', () => {
    const { apply } = start(1, 2)
    expect(apply('web', web(pods(2, 1), { labels: { a: 'b' } }))).toEqual([])
  })
  test('hairpin elements are shared: they go with the last service', () => {
    const here = [endpoint('10.0.0.1', { local: true })]
    const { apply } = started([web(here), { ...web(here), name: 'b', ips: { clusterIps: ips('10.96.0.2') } }])
    expect(apply('web', undefined)).not.toContain('- ip hairpin 10.0.0.1 . 10.0.0.1')
    expect(apply('b', undefined)).toContain('- ip hairpin 10.0.0.1 . 10.0.0.1')
  })
  test('a contested external IP goes to the next service when its owner goes', () => {
    const asks = (name: string, number: number) => ({
      name,
      ips: { externalIps: ips('198.51.100.1') },
      endpoints: pods(number),
    })
    const { apply } = started([asks('a', 1), asks('b', 2)])
    expect(apply('a', undefined)).toEqual([
      '- ip endpoints 198.51.100.1 . tcp . 80 . 0 : 10.0.0.1 . 8080',
      '+ ip endpoints 198.51.100.1 . tcp . 80 . 0 : 10.0.0.2 . 8080',
    ])
    expect(apply('a', asks('a', 3))).toEqual([
      '- ip endpoints 198.51.100.1 . tcp . 80 . 0 : 10.0.0.2 . 8080',
      '+ ip endpoints 198.51.100.1 . tcp . 80 . 0 : 10.0.0.3 . 8080',
    ])
  })
  test('a cluster IP is never taken, whichever service comes first (17)', () => {
    const greedy = (kind: 'externalIps' | 'loadBalancerIps') => ({
      name: 'a-greedy-one',
      ips: { [kind]: ips('10.96.0.1') },
      endpoints: pods(6),
    })
    for (const kind of ['externalIps', 'loadBalancerIps'] as const) {
      const { apply } = started([web(pods(1))])
      expect(apply('a-greedy-one', greedy(kind))).toEqual([])
      expect(apply('web', undefined)).toContain('+ ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.0.0.6 . 8080')
      expect(apply('web', web(pods(2)))).toContain('+ ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.0.0.2 . 8080')
    }
  })
  test('an address of the node changes: the ranges of node ports, whatever the number of node ports', () => {
    const { of, commit } = started([
      web(pods(1), { ports: [tcp(80, { nodePort: 30080 }), tcp(81, { nodePort: 30081 })] }),
    ])
    of.node = thisNode({ addresses: ['172.30.0.2', 'fd00:30::1'] })
    expect(operations(commit({ ...fullSync, full: false, node: true }))).toEqual([
      '- ip node-port-addresses 172.30.0.1',
      '+ ip node-port-addresses 172.30.0.2',
    ])
  })
})

describe('whole addresses', () => {
  const whole = (init: Partial<TestService>) => started([web(pods(1, 2), { mapIp: true, ...init })]).elements
  const lines = (init: Partial<TestService>) =>
    elementLines(whole(init)).filter((line) => !/pods|unmasqueraded|node-port-addresses/.test(line))

  test('of cluster IPs', () => {
    expect(lines({})).toEqual([
      'ip address-endpoints 10.96.0.1 . 0 : 10.0.0.1',
      'ip address-endpoints 10.96.0.1 . 1 : 10.0.0.2',
      'ip whole-cluster-ips 10.96.0.1',
    ])
  })
  test('of external IPs, by policy', () => {
    const external = { ips: { externalIps: ips('198.51.100.1') } }
    expect(lines(external)).toContain('ip external-addresses 198.51.100.1')
    const local = lines({
      ...external,
      externalTrafficToLocal: true,
      endpoints: [endpoint('10.0.0.1', { scopes: ['cluster'] })],
    })
    expect(local).toEqual([
      'ip address-endpoints 198.51.100.1 . 0 : 10.0.0.1',
      'ip dropped-addresses 198.51.100.1',
      'ip local-addresses 198.51.100.1',
    ])
  })
  test('with source ranges are not served, and the log says why', () => {
    const said: unknown[] = []
    const log = { ...silentLog, warn: (_: string, fields: object = {}) => said.push(fields) }
    const ranged = { ips: { loadBalancerIps: ips('192.0.2.1') }, ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }] }
    const { elements } = started([web(pods(1), { mapIp: true, ...ranged })], {}, log)
    expect(elementLines(elements).filter((line) => line.includes('192.0.2.1'))).toEqual([])
    const reason = 'source ranges need ports, and the Service has the whole address'
    expect(said).toEqual([{ service: 'default/web', frontend: '192.0.2.1', reason }])
  })
})

test('a Service above a limit is logged once, however often it changes, and again when it comes back', () => {
  const said: object[] = []
  const log = { ...silentLog, warn: (_: string, fields: object = {}) => said.push(fields) }
  const endpoints = Array.from({ length: 16_387 }, (_, index) => endpoint(`10.7.${index >> 8}.${index & 255}`))
  const big = (count: number) => web(endpoints.slice(0, count))
  const { apply } = started([big(1)], {}, log)
  expect(said).toEqual([])
  for (const count of [16_385, 16_387, 16_386]) apply('web', big(count))
  expect(said).toHaveLength(1)
  expect(said[0]).toMatchObject({ reason: 'it has more than 16384 endpoints, and only the first 16384 are used' })
  apply('web', big(2))
  apply('web', big(16_385))
  expect(said).toHaveLength(2)
})

test('endpoints keep the slots that the kernel shows', () => {
  const { elements, table } = started([web(pods(1, 2, 3))])
  const turned: Elements = new Map(elements)
  const list = [...(elements.get('ip endpoints') ?? [])]
  turned.set('ip endpoints', new Map(list.map(([key], index) => [key, list[(index + 1) % 3]?.[1] ?? ''])))
  const again = new ElementState(settingsOf()).rebuild(table, turned)
  expect(again.get('ip endpoints')).toEqual(turned.get('ip endpoints'))
})

/** The elements without the slots: which endpoints a list has. Slots must be 0 … N-1. */
function canonical(elements: Elements): string[] {
  const lists = new Map<string, { slots: number[]; endpoints: string[] }>()
  const rest: Elements = new Map()
  for (const [path, map] of elements) {
    for (const [key, data] of map) {
      if (!allListKinds.some(({ endpoints }) => path.endsWith(` ${endpoints}`))) {
        put(rest, path, key, data)
        continue
      }
      const list = lists.get(path + key.slice(0, -4)) ?? { slots: [], endpoints: [] }
      list.slots.push(slotOf(key.slice(-4)))
      list.endpoints.push(data)
      lists.set(path + key.slice(0, -4), list)
    }
  }
  for (const { slots } of lists.values()) {
    expect(slots.sort((a, b) => a - b)).toEqual(slots.map((_, index) => index))
  }
  return [...elementLines(rest), ...[...lists].map(([id, { endpoints }]) => id + endpoints.sort().join()).sort()]
}

function applyTo(elements: Elements, { remove, add }: Transaction): void {
  for (const [path, map] of remove) {
    for (const [key, data] of map) {
      expect(elements.get(path)?.get(key)).toBe(data)
      elements.get(path)?.delete(key)
    }
  }
  for (const [path, map] of add) {
    for (const [key, data] of map) {
      expect(elements.get(path as SetPath)?.has(key) ?? false).toBe(false)
      put(elements, path, key, data)
    }
  }
}

const anyService = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd'),
  gone: fc.boolean(),
  clusterIp: fc.constantFrom(1, 2, 3),
  externalIp: fc.constantFrom(undefined, 1, 2),
  greedy: fc.boolean(),
  loadBalancerIp: fc.constantFrom(undefined, 1, 2),
  nodePort: fc.constantFrom(0, 30001, 30002),
  local: fc.boolean(),
  affinity: fc.boolean(),
  filtered: fc.boolean(),
  twoPorts: fc.boolean(),
  mapIp: fc.constantFrom(false, false, true),
  hasEndpoints: fc.boolean(),
  endpoints: fc.uniqueArray(
    fc.record({
      number: fc.integer({ min: 1, max: 40 }),
      internal: fc.boolean(),
      external: fc.boolean(),
      cluster: fc.boolean(),
      local: fc.boolean(),
    }),
    { selector: ({ number }) => number, maxLength: 24 },
  ),
})

function serviceFrom(any: typeof anyService extends fc.Arbitrary<infer T> ? T : never): TestService {
  const optional = (first: string, v6: string, number: number | undefined) =>
    number === undefined ? ips() : ips(`${first}.${number}`, `${v6}::${number}`)
  const port = { nodePort: any.nodePort, servedFamilies: { v4: any.hasEndpoints, v6: any.hasEndpoints } }
  return {
    name: any.name,
    ips: {
      clusterIps: ips(`10.96.0.${any.clusterIp}`, `fd00:96::${any.clusterIp}`),
      externalIps: any.greedy
        ? optional('10.96.0', 'fd00:96', any.externalIp)
        : optional('198.51.100', '2001:db8:51', any.externalIp),
      loadBalancerIps: optional('192.0.2', '2001:db8:2', any.loadBalancerIp),
    },
    ports: any.twoPorts ? [tcp(80, port), udp(53)] : [tcp(80, port)],
    externalTrafficToLocal: any.local,
    mapIp: any.mapIp,
    ...(any.affinity ? { sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 60 } } } : {}),
    ...(any.filtered ? { ipFilters: [{ sourceRanges: ['10.0.0.0/8', '10.1.0.0/16', '172.30.0.0/16'] }] } : {}),
    endpoints: any.endpoints.map(({ number, local, ...scopes }) =>
      endpoint(`10.0.0.${number} fd00::${number}`, {
        local,
        scopes: (['internal', 'external', 'cluster'] as const).filter((scope) => scopes[scope]),
      }),
    ),
  } as TestService
}

describe('loaded in parts', () => {
  const many = Array.from(
    { length: 1201 },
    (_, index): TestService => ({
      name: `service-${index}`,
      ips: { clusterIps: ips(`10.96.${index >> 8}.${index & 255}`) },
      ports: [tcp(80, { nodePort: 1000 + index })],
      endpoints: Array.from({ length: index % 7 }, (_, pod) =>
        endpoint(`10.0.${index >> 8}.${pod + 1}`, { local: true }),
      ),
    }),
  )

  test('a table holds what it holds when it is built at once, and each part has whole frontends', () => {
    const { table, state, elements } = started(many)
    const loaded: Elements = new Map()
    const parts = [...new ElementState(settingsOf({ detectLocal: { mode: 'NodeCIDR' } })).load(table)]
    for (const part of parts) {
      applyTo(loaded, part)
      for (const [path, map] of part.add) {
        const keys = new Set([...map.keys()].map((key) => key.slice(0, -4)))
        if (!path.endsWith('endpoints')) continue
        const held = (key: string) => [...map.keys()].filter((slot) => slot.startsWith(key)).length
        for (const key of keys) expect(held(key)).toBe(state.endpointsOf(path, key).length)
      }
    }
    expect(parts.length).toBeGreaterThan(2)
    expect(canonical(loaded)).toEqual(canonical(elements))
  })

  test('a table without Services is one part: the node has elements too', () => {
    const { table } = started([])
    expect([...new ElementState(settingsOf()).load(table)]).toHaveLength(1)
  })

  test('changes go on from there', () => {
    const { of, table } = started(many)
    const state = new ElementState(settingsOf({ detectLocal: { mode: 'NodeCIDR' } }))
    for (const _ of state.load(table));
    const gone = state.change(table.apply(of, change(of, 'service-3', undefined), machine), table)
    expect(operations(gone)).toContain('- ip cluster-ips 10.96.0.3')
    expect(gone.add.size).toBe(0)
  })
})

describe('with counters', () => {
  const counting = { counters: true }
  const ports = [tcp(80, { nodePort: 30080 })]

  test('each address and port, and each node port, has an element that counts', () => {
    const { elements } = started([web(pods(1), { ports })], counting)
    const counted = elementLines(elements).filter((line) => line.includes(' counted'))
    expect(counted).toEqual(['ip counted 10.96.0.1 . tcp . 80', 'ip counted-node-ports tcp . 30080'])
  })
  test('which stays when endpoints change, and goes with the service', () => {
    const { apply } = started([web(pods(1), { ports })], counting)
    expect(apply('web', web([], { ports })).filter((line) => line.includes('counted'))).toEqual([])
    expect(apply('web', undefined).filter((line) => line.includes('counted'))).toEqual([
      '- ip counted 10.96.0.1 . tcp . 80',
      '- ip counted-node-ports tcp . 30080',
    ])
  })
})

test.each([
  ['', {}],
  [', with counters', { counters: true }],
])('any sequence of changes ends where a full recompute does%s', (_, options) => {
  fc.assert(
    fc.property(fc.array(anyService, { maxLength: 30 }), (steps) => {
      const { of, table, elements, commit } = started([], options)
      for (const step of steps) {
        applyTo(elements, commit(change(of, step.name, step.gone ? undefined : serviceFrom(step))))
        const whole = new ElementState(settingsOf(options)).rebuild(table)
        expect(canonical(elements)).toEqual(canonical(whole))
      }
    }),
    { numRuns: 60 },
  )
})
