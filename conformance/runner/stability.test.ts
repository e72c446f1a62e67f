import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, ProbeRequest } from '@kpng/linux/testing'
import { describe, expect, it } from 'vitest'
import { addressOf, clusterIp, podPorts } from '../addresses.js'
import type { Case, Cell, Expectation } from '../cases/case.js'
import { reaches, refused } from '../cases/cells.js'
import type { Lab } from '../lab/lab.js'
import type { CellResult } from '../report/report.js'
import { ChangeWatch, watchable } from './change-watch.js'
import { Pace } from './pace.js'
import { measureRound, Patience } from './round.js'
import { type PlacedCell, type Round, roundsOf } from './rounds.js'
import { proveStability, steadyCells } from './stability.js'
import { Tally } from './tally.js'

const reached = (server = 'a1'): Outcome => ({ outcome: 'reached', server, from: addressOf['pod-a'].IPv4, port: 8080 })
const reset: Outcome = { outcome: 'refused' }
const silence: Outcome = { outcome: 'dropped' }

const cellTo = (number: number, expect: Expectation, more: Partial<Cell> = {}): Cell => ({
  id: `to-${number}.v4`,
  client: 'pod-a',
  to: { protocol: 'TCP', family: 'IPv4', ip: clusterIp(number).IPv4, port: 80 },
  expect,
  rows: [13],
  ...more,
})
const caseOf = (id: string, ...steps: readonly (readonly [object: string, cell: Cell])[]): Case => ({
  id,
  title: '',
  steps: steps.map(([name, cell]) => ({
    after: '',
    objects: [{ apiVersion: 'v1', kind: 'Service', metadata: { name } }],
    cells: [cell],
  })),
})
const roundOf = (...cases: Case[]): Round => roundsOf(cases)[0] as Round

/** A lab in which pods answer after `controlMs`, and everything else as the test says. */
function labWith(answer: (request: ProbeRequest, count: number) => Outcome, controlMs = 0) {
  let count = 0
  const call = async (_method: string, request: ProbeRequest): Promise<Outcome> => {
    if (request.to.port !== podPorts[0]) return answer(request, ++count)
    await sleep(controlMs)
    return reached()
  }
  const lab = { agents: { 'pod-a': { call } } } as unknown as Lab
  return { lab, pace: new Pace(lab), deviations: [], tally: new Tally(), connections: 200, asked: () => count }
}

async function measured(round: Round, lab: ReturnType<typeof labWith>, settleMs = 3000) {
  const patience = new Patience(settleMs)
  const measuring = { ...lab, settleMs, patience, flowPrefix: '', before: new Map() }
  return { ...(await measureRound(round.cells, measuring)), patience }
}

describe('a cell that is wrong', () => {
  const round = roundOf(caseOf('one', ['web', cellTo(1, reaches(['a1']))]))

  it('is measured until it is right, and the report says how long it took', async () => {
    const { results } = await measured(
      round,
      labWith((_, count) => (count <= 16 ? reset : reached())),
    )
    expect(results).toMatchObject([{ status: 'right', attempts: 3, rightAfterMs: expect.any(Number) }])
  })

  it('is unstable if it becomes right and is wrong the next time', async () => {
    const { results } = await measured(
      round,
      labWith((_, count) => (count <= 8 || count === 17 ? reset : reached())),
    )
    expect(results).toMatchObject([{ status: 'unstable', got: expect.stringContaining('right at try 2, then') }])
  })

  it('is doubtful if some of its tries were right', async () => {
    const { results, doubtful } = await measured(
      round,
      labWith((_, count) => (count === 3 ? reset : reached())),
    )
    expect(results).toMatchObject([{ status: 'right', attempts: 2 }])
    expect([...doubtful]).toEqual(['one/to-1.v4'])
    expect(
      (
        await measured(
          round,
          labWith(() => reached()),
        )
      ).doubtful.size,
    ).toBe(0)
  })

  it('is waited for only as long as the patience of the run lasts', async () => {
    const lab = labWith(() => reset)
    const { results, patience } = await measured(round, lab, 10)
    expect(results).toMatchObject([{ status: 'wrong', attempts: 3 }])
    expect(patience.isOver).toBe(true)
  })
})

describe('cells that were right', () => {
  const round = roundOf(
    caseOf('one', ['web', cellTo(1, reaches(['a1', 'a2']))]),
    caseOf('two', ['shop', cellTo(2, reaches(['a1']))]),
  )
  const results = new Map(
    round.cells.map((placed) => [placed.id, { id: placed.id, status: 'right' } as CellResult] as const),
  )
  const prove = async (lab: ReturnType<typeof labWith>, doubtful: ReadonlySet<string> = new Set()) => {
    await proveStability(steadyCells(round.cells, results, []), doubtful, lab)
    return lab.tally
  }
  const stability = (connections: number, failed: number) => [
    { kind: 'clusterIP', protocol: 'TCP', family: 'IPv4', connections, failed },
  ]

  it('get 200 connections, shared out among them', async () => {
    const asked = new Map<string, number>()
    const tally = await prove(
      labWith(({ to, sendOnce }) => {
        expect(sendOnce).toBe(true)
        asked.set(to.ip, (asked.get(to.ip) ?? 0) + 1)
        return reached()
      }),
    )
    expect(tally.stability).toEqual(stability(200, 0))
    expect([...asked.values()]).toEqual([100, 100])
    expect(tally.unstable.size).toBe(0)
  })

  it('are unstable after one refusal, or one wrong pod', async () => {
    for (const bad of [reset, reached('b2')]) {
      const tally = await prove(labWith(({ to }, count) => (count === 150 ? { ...bad, ip: to.ip } : reached())))
      expect(tally.stability).toEqual(stability(200, 1))
      expect([...tally.unstable.values()].join()).toMatch(/^1 of 100 connections after it had been right: /)
    }
  })

  it('get 1,000 more if something was silent, and are unstable only if that happens again', async () => {
    const once = await prove(labWith((_, count) => (count === 150 ? silence : reached())))
    expect(once.stability).toEqual(stability(1200, 0))
    expect(once.unstable.size).toBe(0)
    const twice = await prove(labWith((_, count) => (count === 150 || count === 400 ? silence : reached())))
    expect(twice.stability[0]?.failed).toBe(2)
    expect(twice.unstable.size).toBeGreaterThan(0)
  })

  it.each([
    [2, 3000, 0],
    [8, 3000, 0],
    [30, 3000, 30],
    [2, 500, 2],
  ])('%i silent connections of %i: %i failed', (silent, connections, failed) => {
    const tally = new Tally()
    const [placed] = round.cells as [PlacedCell]
    const outcomes = Array.from({ length: connections }, (_, index) => (index < silent ? silence : reached()))
    tally.add(placed, 'at any time', [placed.cell.expect], outcomes)
    expect(tally.stability).toEqual(stability(connections, failed))
    expect(tally.unstable.size).toBe(failed > 0 ? 1 : 0)
  })

  it('get 1,000 if some tries of one were wrong beside right ones', async () => {
    const tally = await prove(
      labWith(() => reached()),
      new Set(['two/to-2.v4']),
    )
    expect(tally.stability).toEqual(stability(1000, 0))
  })

  it('are not judged by the silence of a slow machine', async () => {
    // Less than five times what the control takes.
    const lab = labWith(() => silence)
    lab.pace.timeoutMs = () => 1
    lab.pace.measure = async () => 1
    const tally = await prove(lab)
    expect(tally.stability).toEqual(stability(0, 0))
    // It is not asked for ever.
    expect(lab.asked()).toBeLessThan(1000)
  })

  it('are not asked if only several tries together say something, or if nothing is to come back', () => {
    const others = roundOf(
      caseOf('flow', ['web', cellTo(1, reaches(['a1']), { flow: 'f' })]),
      caseOf('dropped', ['web', cellTo(2, { outcome: 'dropped' })]),
      caseOf('udp', ['web', { ...cellTo(3, refused), to: { ...cellTo(3, refused).to, protocol: 'UDP' } }]),
      caseOf('pod', ['web', { ...cellTo(4, reaches(['a1'])), to: { ...cellTo(4, refused).to, ip: '10.244.1.11' } }]),
    )
    const right = new Map(others.cells.map(({ id }) => [id, { id, status: 'right' } as CellResult] as const))
    expect(steadyCells(others.cells, right, [])).toEqual([])
    expect(steadyCells(round.cells, new Map(), [])).toEqual([])
  })
})

describe('during a change', () => {
  const stays = caseOf('stays', ['web', cellTo(1, reaches(['a1']))])
  const moves = caseOf('moves', ['web-1', cellTo(2, reaches(['a1']))], ['web-2', cellTo(2, reaches(['b1']))])
  const [before, after] = roundsOf([stays, moves]) as [Round, Round]
  const right = new Map(before.cells.map(({ id }) => [id, { id, status: 'right' } as CellResult] as const))
  const watched = (isAtomic = true) =>
    watchable(steadyCells(before.cells, right, []), before, after, { deviations: [] }, isAtomic)

  it('what does not change must stay, and what changes may be as before or as afterwards', () => {
    expect(watched().map(({ placed, allowed }) => [placed.id, allowed])).toEqual([
      ['stays/to-1.v4', [reaches(['a1'])]],
      ['moves/1/to-2.v4', [reaches(['a1']), reaches(['b1'])]],
    ])
  })

  it('only what does not change is watched if objects come one by one', () => {
    expect(watched(false).map(({ placed }) => placed.id)).toEqual(['stays/to-1.v4'])
  })

  it('nothing is watched if the proxy is ended, or other cases come', () => {
    const steady = steadyCells(before.cells, right, [])
    const end = { case: stays, action: { kind: 'end-proxy', signal: 'SIGKILL' } } as const
    expect(watchable(steady, { ...before, actions: [end] }, after, { deviations: [] }, true)).toEqual([])
    expect(watchable(steady, before, roundOf(stays), { deviations: [] }, true)).toEqual([])
  })

  it.each([
    ['an endpoint that was never right', reached('a2'), 2],
    ['a refusal', reset, 2],
    ['what was right before', reached('a1'), 0],
    ['what is right afterwards', reached('b1'), 1],
  ])('tells %s', async (_, seen, unstable) => {
    const lab = labWith(() => seen)
    const watch = new ChangeWatch(watched(), 'during the change', lab)
    while (lab.asked() < 4) await sleep(1)
    await watch.end()
    expect(lab.tally.unstable.size).toBe(unstable)
  })
})
