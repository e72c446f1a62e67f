import type { Diagnosis } from '@kpng/api'
import { collected, found } from '@kpng/diagnose'
import { describe, expect, test } from 'vitest'
import { oldFields, skippedObjects, slicesWithoutService } from './cluster-checks.js'
import type { ServiceFact } from './cluster-facts.js'
import { check, runChecks } from './finding.js'
import { reportText } from './report-text.js'
import { certificates, clock, rights, server } from './server-checks.js'

const service = (path: string, more: Partial<ServiceFact> = {}): ServiceFact => ({
  ...{ path, nodePorts: [], fields: [] },
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
  const refused = (path: string): Diagnosis => ({
    ...{ service: path, verdict: 'refused', headline: '', reason: '', used: 0, unknown: [] },
    findings: [found('KPNG-S003', 'Nothing answers: its only endpoint is not ready.'), found('KPNG-S008', 'A note.')],
  })

  test('one that does not answer is reported as it is, and notes are left out', () => {
    expect(collected([refused('a/web')])).toMatchObject([
      {
        code: 'KPNG-S003',
        what: 'a/web: Nothing answers: its only endpoint is not ready.',
        command: 'kpng explain web -n a',
      },
    ])
  })

  test('10,000 with the same finding are one finding, cut to a few', () => {
    const all = Array.from({ length: 10_000 }, (_, index) => refused(`a/s${index}`))
    expect(collected(all)).toMatchObject([
      { code: 'KPNG-S003', what: '10000 Services: no endpoint is ready.', more: 9995, command: 'kpng explain s0 -n a' },
    ])
  })

  test('slices without one', () => {
    expect(slicesWithoutService({ slicesWithoutService: [] })).toEqual([])
    expect(slicesWithoutService({ slicesWithoutService: ['a/x'] })).toMatchObject([
      { what: '1 EndpointSlice belongs to no Service.', examples: ['a/x'] },
    ])
  })

  test('skipped objects', () => {
    expect(skippedObjects({ skipped: new Map() })).toEqual([])
    expect(skippedObjects({ skipped: new Map([['Service a/web', ['spec.ports[0] is bad.']]]) })).toMatchObject([
      { level: 'warning', examples: ['Service a/web: spec.ports[0] is bad.'] },
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
  const note = { code: 'KPNG-X001', level: 'note', what: 'What.', why: 'Why.', todo: 'Todo.' } as const
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
    expect(reportText({ schemaVersion: 2, about: 'About', sections: [section] })).toBe(
      'About\n\nTitle\n\n  ok: nothing found by 1 check\n\n0 problems, 0 warnings, 0 notes\n',
    )
  })
})
