import { silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { change, fullSync, type TestService, view } from '../../dataplane/testing/objects.js'
import { schedulerAnnotation, settingsOf } from './options.js'
import { Schedulers } from './schedulers.js'
import { neededSysctls } from './sysctls.js'

const withScheduler = (scheduler?: string): TestService => ({
  name: 'web',
  annotations: scheduler === undefined ? {} : { [schedulerAnnotation]: scheduler },
})

test('a Service has the scheduler of its annotation if the kernel has it; each is asked for once', async () => {
  const asked: string[] = []
  const warnings: string[] = []
  const probe = async (scheduler: string) => {
    asked.push(scheduler)
    return scheduler === 'lc' ? 0 : 2
  }
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) }
  const schedulers = new Schedulers('rr', probe, log)
  const state = view([withScheduler('lc')])
  expect(await schedulers.apply(state, fullSync)).toEqual(['default/web'])
  expect(schedulers.of('default/web')).toBe('lc')
  expect(await schedulers.apply(state, fullSync)).toEqual([])
  for (const [scheduler, changed] of [
    ['mh', ['default/web']],
    ['quick', []],
    ['lc', ['default/web']],
    [undefined, ['default/web']],
  ] as const) {
    expect(await schedulers.apply(state, change(state, 'web', withScheduler(scheduler)))).toEqual(changed)
    expect(schedulers.of('default/web')).toBe(scheduler === 'lc' ? 'lc' : 'rr')
  }
  expect(asked).toEqual(['lc', 'mh'])
  expect(warnings).toEqual([
    expect.stringContaining('Load the module ip_vs_mh'),
    expect.stringContaining('Give one of rr, wrr'),
  ])
  await schedulers.apply(state, change(state, 'web', undefined))
  expect(schedulers.of('default/web')).toBe('rr')
})

test.each([
  ['rr', 0, 'sh'],
  ['mh', 0, 'mh'],
  ['rr', 2, 'rr'],
])(
  'clients are hashed by a scheduler that is there: default %s, errno of sh %i: %s',
  async (scheduler, errno, expected) => {
    expect(await new Schedulers(scheduler, async () => errno, silentLog).hashScheduler()).toBe(expected)
  },
)

test('an unknown scheduler, a range that is none and a bad bit are errors at once', () => {
  expect(() => settingsOf({ scheduler: 'quick' })).toThrow(/no scheduler "quick". Give one of rr, /)
  expect(() => settingsOf({ excludeCidrs: ['10.0.0.1'] })).toThrow(/"10.0.0.1" in excludeCIDRs is not a CIDR/)
  expect(() => settingsOf({ masqueradeBit: 32 })).toThrow(/masqueradeBit 32/)
})

test.each([
  ['5.8.18', true],
  ['4.18.0-553', true],
  ['5.9.0', false],
  ['6.1.0-54-cloud-amd64', false],
])('kernel %s: reused ports lose connections: %s', (kernel, isOld) => {
  const names = neededSysctls(false, kernel).map(([name]) => name)
  expect(names.includes('net.ipv4.vs.conn_reuse_mode')).toBe(isOld)
  expect(names.some((name) => name.includes('arp'))).toBe(false)
  expect(neededSysctls(true, kernel)).toContainEqual(['net.ipv4.conf.all.arp_announce', 2])
})
