import type { ServiceProblem } from '@kpng/dataplane'
import { describe, expect, test } from 'vitest'
import {
  awaitingLoadBalancer,
  claims,
  oldFields,
  servedInPart,
  skippedObjects,
  slicesWithoutService,
  withoutEndpoints,
} from './cluster-checks.js'
import type { ServiceFact } from './cluster-facts.js'
import { check, runChecks } from './finding.js'
import { reportText } from './report-text.js'
import { certificates, clock, rights, server } from './server-checks.js'

const service = (path: string, more: Partial<ServiceFact> = {}): ServiceFact => ({
  ...{ path, hasSelector: true, nodePorts: [], awaitsLoadBalancer: false, isServed: true },
  ...{ endpoints: 1, readyEndpoints: 1, fields: [] },
  ...more,
})

const levels = (findings: readonly { level: string }[]) => findings.map(({ level }) => level)

describe('the API server', () => {
  test.each([
    [{ version: 'v1.33.0' }, []],
    [{ version: 'v1.24.0-eks-1' }, []],
    [{ version: 'v1.23.17' }, ['warning']],
    [{ version: 'v2.0.0' }, []],
    [{ version: 'unknown' }, []],
    [{ problem: 'it refused the connection.' }, ['problem']],
  ])('%o', (fact, expected) => {
    expect(levels(server({ server: { url: 'https://10.0.0.1', ...fact } }))).toEqual(expected)
  })

  test.each([
    [0, []],
    [-9000, []],
    [30_000, ['warning']],
    [-400_000, ['problem']],
  ])('its clock is %i ms ahead', (clockAheadMs, expected) => {
    expect(levels(clock({ clockAheadMs }))).toEqual(expected)
  })

  const day = 86_400_000
  test.each([
    ['valid', -100, 265, []],
    ['soon over', -350, 15, ['warning']],
    ['over', -400, -1, ['problem']],
    ['not yet valid', 1, 300, ['problem']],
    ['one that lives for a day, in its middle', -0.5, 0.5, []],
    ['one that lives for a day, at its end', -0.9, 0.1, ['warning']],
  ])('a certificate: %s', (_, fromDays, toDays, expected) => {
    const now = Date.parse('2026-01-01')
    const certificate = { where: 'ca.crt', subject: 'CN=a' }
    const dates = { validFromMs: now + fromDays * day, validToMs: now + toDays * day }
    expect(levels(certificates({ certificates: [{ ...certificate, ...dates }] }, now))).toEqual(expected)
  })

  test('rights that kpng needs, and those that it can do without', () => {
    const right = (verb: string, resource: string, isAllowed: boolean) => ({ verb, group: '', resource, isAllowed })
    expect(rights({ rights: [right('list', 'services', true)] })).toEqual([])
    expect(rights({ rights: [right('list', 'services', false), right('create', 'events', false)] })).toMatchObject([
      { level: 'problem', examples: ['list services'] },
      { level: 'warning', examples: ['create events'] },
    ])
  })
})

describe('Services', () => {
  test('without a ready endpoint, unless nobody serves them', () => {
    const services = [
      service('a/good'),
      service('a/headless', { isServed: false, endpoints: 0, readyEndpoints: 0 }),
      service('a/unready', { endpoints: 2, readyEndpoints: 0 }),
      service('a/empty', { endpoints: 0, readyEndpoints: 0 }),
      service('a/manual', { endpoints: 0, readyEndpoints: 0, hasSelector: false }),
    ]
    expect(withoutEndpoints({ services: services.slice(0, 2) })).toEqual([])
    expect(withoutEndpoints({ services })).toMatchObject([
      {
        what: '3 Services have no ready endpoint.',
        examples: [
          'a/unready: none of 2 endpoints is ready',
          'a/empty: no endpoints; its selector may match no pod',
          'a/manual: no endpoints and no selector: somebody must write its EndpointSlices',
        ],
        command: 'kpng explain unready -n a',
      },
    ])
  })

  test('10,000 of them are cut to a few', () => {
    const services = Array.from({ length: 10_000 }, (_, index) => service(`a/s${index}`, { readyEndpoints: 0 }))
    expect(withoutEndpoints({ services })).toMatchObject([{ more: 9995 }])
  })

  test('slices without one', () => {
    expect(slicesWithoutService({ slicesWithoutService: [] })).toEqual([])
    expect(slicesWithoutService({ slicesWithoutService: ['a/x'] })).toMatchObject([
      { what: '1 EndpointSlice belongs to no Service.', examples: ['a/x'] },
    ])
  })

  test('conflicts are apart from other parts that are not served', () => {
    const conflict = (sentence: string): ServiceProblem => ({ kind: 'conflict', sentence })
    const notServed = new Map<string, ServiceProblem[]>([
      [
        'a/web',
        [
          conflict('192.0.2.1:80/tcp belongs to Service a/first'),
          { kind: 'loopback-endpoint', sentence: 'endpoint 127.0.0.1 is on loopback' },
        ],
      ],
      ['a/thief', [conflict('10.96.0.1:443/tcp is taken')]],
    ])
    expect(claims({ notServed })).toMatchObject([
      {
        level: 'problem',
        examples: ['a/web: 192.0.2.1:80/tcp belongs to Service a/first', 'a/thief: 10.96.0.1:443/tcp is taken'],
      },
    ])
    expect(servedInPart({ notServed })).toMatchObject([{ examples: ['a/web: endpoint 127.0.0.1 is on loopback'] }])
    expect([...claims({ notServed: new Map() }), ...servedInPart({ notServed: new Map() })]).toEqual([])
  })

  test('skipped objects', () => {
    expect(skippedObjects({ skipped: new Map() })).toEqual([])
    expect(skippedObjects({ skipped: new Map([['Service a/web', ['spec.ports[0] is bad.']]]) })).toMatchObject([
      { level: 'warning', examples: ['Service a/web: spec.ports[0] is bad.'] },
    ])
  })

  test('load balancers without an address', () => {
    expect(awaitingLoadBalancer({ services: [service('a/web')] })).toEqual([])
    expect(awaitingLoadBalancer({ services: [service('a/lb', { awaitsLoadBalancer: true })] })).toMatchObject([
      { what: '1 Service of type LoadBalancer has no address.' },
    ])
  })

  test('deprecated fields', () => {
    const services = [service('a/web', { fields: ['spec.externalIPs', 'spec.loadBalancerIP'] }), service('a/other')]
    expect(oldFields({ services }).map(({ what }) => what)).toEqual([
      '1 Service uses spec.externalIPs.',
      '1 Service uses spec.loadBalancerIP.',
    ])
  })
})

describe('running checks', () => {
  interface Facts {
    readonly a: number
    readonly b: number
  }
  const note = { level: 'note', what: 'What.', why: 'Why.', todo: 'Todo.' } as const
  const checks = [
    check<Facts, 'a'>('one', ['a'], ({ a }) => (a > 0 ? [note] : [])),
    check<Facts, 'a' | 'b'>('two', ['a', 'b'], () => [note]),
    check<Facts, 'a'>('three', ['a'], () => {
      throw new Error('a bug')
    }),
  ]

  test('a check without its facts is skipped aloud, and one that fails does not stop another', () => {
    const section = runChecks<Facts>('Title', checks, { a: { value: 1 }, b: { unknown: 'not root' } })
    expect(section.findings).toEqual([{ check: 'one', ...note }])
    expect(section.skipped).toEqual([
      { check: 'two', reason: 'not root' },
      { check: 'three', reason: 'the check itself failed: Error: a bug' },
    ])
  })

  test('a section without findings says so', () => {
    const section = runChecks<Facts>('Title', checks.slice(0, 1), { a: { value: 0 }, b: { value: 0 } })
    expect(reportText({ about: 'About', sections: [section] })).toBe(
      'About\n\nTitle\n\n  ok: nothing found by 1 check\n\n0 problems, 0 warnings, 0 notes\n',
    )
  })
})
