import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome } from '@kpng/linux/testing'
import { describe, expect, it } from 'vitest'
import { type Action, type Case, isDecidedByObjects } from '../cases/case.js'
import { cases } from '../cases/index.js'
import type { Lab } from '../lab/lab.js'
import { settingsOf } from '../options.js'
import { perform } from './actions.js'
import type { Proxiers } from './proxiers.js'
import { RequestLoop } from './request-loop.js'
import { roundsOf } from './rounds.js'
import { skipReason } from './skip.js'

const named = (id: string): Case => cases.find((one) => one.id === id) as Case

describe('actions', () => {
  const script = (text: string): Action => ({ kind: 'run', host: 'node-a', script: text })
  const done: string[] = []
  const lab = {
    async run(host, program, args, { input } = {}) {
      if (input === 'fails') throw new Error('no such program')
      done.push([host, program, ...args, input].join(' '))
      return ''
    },
  } as Partial<Lab> as Lab
  const proxiers = { endMain: async (signal) => void done.push(`ended by ${signal}`) } as Partial<Proxiers> as Proxiers
  const apiServer = { away: () => void done.push('away'), back: () => {} }

  it('are done in their order; a case whose action fails is left, with the reason', async () => {
    const [one, two] = [named('cluster-ip'), named('hairpin')]
    const actions: [Case, Action][] = [
      [one, script('fails')],
      [one, script('not done')],
      [two, script('true')],
      [two, { kind: 'end-proxy', signal: 'SIGKILL' }],
      [two, { kind: 'api-server-away' }],
    ]
    const failed = await perform(
      actions.map(([each, action]) => ({ case: each, action })),
      { lab, proxiers, apiServer },
    )
    expect([...failed]).toEqual([[one, 'this machine cannot do what the case asks for: no such program']])
    expect(done).toEqual(['node-a sh -e true', 'ended by SIGKILL', 'away'])
  })
})

describe('cases with actions', () => {
  const settings = settingsOf({ proxy: ['p', '{manifests}'], feed: 'manifests', backend: 'nft', log: () => {} })
  const reasonOf = (id: string, more: Partial<typeof settings> = {}) => {
    const one = named(id)
    const [cell] = one.steps[0]?.cells ?? []
    if (!cell) throw new Error('no cell')
    return skipReason({ id, case: one, step: 0, cell }, { settings: { ...settings, ...more }, noSctp: undefined })
  }

  it('are skipped where they cannot be played', () => {
    expect(reasonOf('api-server-restarted')).toContain('manifests')
    expect(reasonOf('api-server-restarted', { feed: { kubeconfig: 'k' } })).toBeUndefined()
    expect(reasonOf('two-nodes')).toContain('{node}')
    expect(reasonOf('two-nodes', { proxy: ['p', '{node}'] })).toBeUndefined()
    expect(reasonOf('node-ports-everywhere')).toBeUndefined()
    expect(reasonOf('node-ports-everywhere', { backend: 'userspace' })).toContain('--nodeport-addresses')
  })

  it('are played apart from the others if they restart the proxy or need another one', () => {
    const rounds = roundsOf(cases)
    const besides = (id: string) => rounds.find((round) => round.cases.includes(named(id)))?.cases.length
    expect(besides('cluster-ip')).toBeGreaterThan(50)
    expect(besides('blue-green')).toBe(besides('cluster-ip'))
    for (const id of ['proxy-restarted', 'rules-flushed', 'two-nodes', 'node-ports-everywhere'])
      expect([id, besides(id)]).toEqual([id, 1])
    expect(rounds.filter(({ flags }) => flags !== undefined).map(({ cases: [one] }) => one?.id)).toEqual([
      'node-ports-everywhere',
      'localhost-node-ports-off',
    ])
  })

  it('are told from those in which the objects decide', () => {
    const others = cases.filter((one) => !isDecidedByObjects(one)).map(({ id }) => id)
    expect(others).toContain('two-nodes')
    expect(others).toContain('rules-flushed')
    expect(others).not.toContain('path-mtu')
  })
})

it('a loop asks until it is ended, and keeps what came of each request', async () => {
  const answers: Outcome[] = [{ outcome: 'refused' }, { outcome: 'dropped' }]
  let asked = 0
  const loop = new RequestLoop(async () => answers[Math.min(asked++, 1)] as Outcome)
  while (asked < 3) await sleep(1)
  const outcomes = await loop.end()
  expect(outcomes).toHaveLength(asked)
  expect(outcomes.slice(0, 2)).toEqual(answers)
})
