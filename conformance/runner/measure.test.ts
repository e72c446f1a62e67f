import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, ProbeRequest } from '@kpng/linux/testing'
import { describe, expect, it } from 'vitest'
import { addressOf, podPorts } from '../addresses.js'
import type { Cell } from '../cases/case.js'
import { dropped, reaches } from '../cases/cells.js'
import type { Lab } from '../lab/lab.js'
import { measure } from './measure.js'
import { Pace } from './pace.js'

const reached: Outcome = { outcome: 'reached', server: 'a1', from: '10.244.1.10', port: 8080 }
const silence: Outcome = { outcome: 'dropped' }
const cell: Cell = {
  id: 'one',
  client: 'pod-a',
  to: { protocol: 'TCP', family: 'IPv4', ip: '10.96.1.1', port: 80 },
  expect: reaches(['a1']),
  rows: [13],
}

/** A lab in which the control takes so long, time by time, and everything else is answered as the test says. */
function labWith(controlMs: readonly number[], answer: (request: ProbeRequest) => Promise<Outcome> | Outcome) {
  const asked: ProbeRequest[] = []
  let controls = 0
  const call = async (_method: string, request: ProbeRequest): Promise<Outcome> => {
    if (request.to.ip === addressOf.a1.IPv4 && request.to.port === podPorts[0]) {
      await sleep(controlMs[Math.min(controls++, controlMs.length - 1)])
      return reached
    }
    asked.push(request)
    return answer(request)
  }
  const lab = { agents: { 'pod-a': { call } } } as unknown as Lab
  return { lab, pace: new Pace(lab), asked }
}

describe('silence', () => {
  it('is a drop where others are answered at once', async () => {
    const { lab, pace, asked } = labWith([0], () => silence)
    expect(await measure(lab, pace, { ...cell, expect: dropped }, '')).toEqual([silence, silence, silence])
    expect(asked[0]?.timeoutMs).toBe(700)
  })

  it('proves nothing on a machine that is slow: more time is given', async () => {
    // More than the usual 700 ms, and less than five times the 300 ms that the control takes.
    const enoughMs = 1400
    const { lab, pace, asked } = labWith([300, 0], ({ timeoutMs }) => (timeoutMs < enoughMs ? silence : reached))
    const outcomes = await measure(lab, pace, { ...cell, tries: 2 }, '')
    expect(outcomes).toEqual([reached, reached])
    expect(asked.map(({ timeoutMs }) => timeoutMs >= enoughMs)).toEqual([false, false, true, true])
    expect(pace.takeSlowness()).toBe(true)
    expect(pace.takeSlowness()).toBe(false)
  })

  it('is not asked about without end', async () => {
    // Slower each time, so that no silence is ever long enough.
    const { lab, pace, asked } = labWith([200, 240, 280, 320, 360, 400], () => silence)
    pace.timeoutMs = () => 700
    expect(await measure(lab, pace, { ...cell, tries: 1 }, '')).toEqual([silence])
    expect(asked).toHaveLength(6)
  })
})

it('makes tries again that came too late after each other', async () => {
  let late = true
  const { lab, pace, asked } = labWith([0], async () => {
    if (asked.length === 2 && late) {
      late = false
      await sleep(600)
    }
    return reached
  })
  const spacing = { ms: 1, atMostMs: 500 }
  const outcomes = await measure(lab, pace, { ...cell, tries: 3, spacing }, '')
  expect(outcomes).toHaveLength(3)
  expect(asked.length % 3).toBe(0)
  expect(asked.length).toBeGreaterThan(3)
})
