import type { Outcome } from '@kpng/linux/testing'
import { describe, expect, it } from 'vitest'
import { dropped, keepsSource, masqueraded, passed, reaches, refused, unserved } from '../cases/cells.js'
import { deviated, deviationOf } from '../deviations/deviation.js'
import { evaluate, expectationText } from './evaluate.js'
import { matchesAny } from './glob.js'

const podA = '10.244.1.10'
const nodeA = '172.30.0.1'
const reached = (server: string, from = podA, port = 8080): Outcome => ({ outcome: 'reached', server, from, port })
const gateway = reached('gateway')
const drop: Outcome = { outcome: 'dropped' }
const refuse: Outcome = { outcome: 'refused' }
const broken: Outcome = { outcome: 'broken', how: 'ECONNRESET' }

describe('evaluate', () => {
  const right: [string, Parameters<typeof evaluate>[0], Outcome[]][] = [
    ['all servers, source kept', keepsSource(['a1', 'b1']), [reached('a1'), reached('b1'), reached('a1')]],
    ['the node as source', masqueraded(['a1']), [reached('a1', nodeA)]],
    ['any source', reaches(['a1']), [reached('a1', '192.0.2.1')]],
    ['the target port', reaches(['a1:9090']), [reached('a1', podA, 9090)]],
    ['always the same', reaches(['a1', 'b1'], { hits: 'one' }), [reached('b1'), reached('b1')]],
    ['more than one', reaches(['a1', 'b1', 'b2'], { hits: 'several' }), [reached('b1'), reached('b2')]],
    ['some', reaches(['a1', 'b1'], { hits: 'some' }), [reached('b1')]],
    [
      'evenly',
      reaches(['a1', 'b1'], { hits: 'evenly' }),
      [...Array(110).fill(reached('a1')), ...Array(90).fill(reached('b1'))],
    ],
    ['refused', refused, [refuse, refuse]],
    ['dropped', dropped, [drop]],
    ['passed', passed, [gateway]],
    ['unserved by refusal', unserved, [refuse, drop, gateway]],
  ]
  it.each(right)('%s is right', (_name, expectation, outcomes) => {
    expect(evaluate(expectation, 'pod-a', outcomes).right).toBe(true)
  })

  const wrong: [string, Parameters<typeof evaluate>[0], Outcome[]][] = [
    ['a server that is never hit', keepsSource(['a1', 'b1']), [reached('a1'), reached('a1')]],
    [
      'one server more often than chance allows',
      reaches(['a1', 'b1'], { hits: 'evenly' }),
      [...Array(140).fill(reached('a1')), ...Array(60).fill(reached('b1'))],
    ],
    ['a server too many', keepsSource(['a1']), [reached('a1'), reached('b1')]],
    ['a masqueraded source', keepsSource(['a1']), [reached('a1', nodeA)]],
    ['a kept source', masqueraded(['a1']), [reached('a1')]],
    ["somebody else's address as source", keepsSource(['a1']), [reached('a1', '10.244.1.12')]],
    ['another target port', reaches(['a1:9090']), [reached('a1', podA, 8080)]],
    ['one try of many that is dropped', reaches(['a1']), [reached('a1'), drop]],
    ['a change of the endpoint', reaches(['a1', 'b1'], { hits: 'one' }), [reached('a1'), reached('b1')]],
    ['always the same', reaches(['a1', 'b1'], { hits: 'several' }), [reached('a1'), reached('a1')]],
    ['a drop for a refusal', refused, [drop]],
    ['a refusal for a drop', dropped, [refuse]],
    ['a reset after the connection for a refusal', refused, [broken]],
    ['a packet that went away for a drop', dropped, [gateway]],
    ['a pod where nobody should answer', unserved, [reached('a1')]],
    ['nothing measured', refused, []],
  ]
  it.each(wrong)('%s is wrong', (_name, expectation, outcomes) => {
    expect(evaluate(expectation, 'pod-a', outcomes).right).toBe(false)
  })

  it('says what was seen, each thing once', () => {
    const outcomes = [reached('b1', nodeA), reached('a1'), reached('b1', nodeA), drop, reached('a1', '10.0.0.9')]
    expect(evaluate(refused, 'pod-a', outcomes).got).toBe(
      '1× a1:8080, from 10.0.0.9; 1× a1:8080, source kept; 2× b1:8080, from the node; 1× dropped',
    )
    expect(evaluate(refused, 'pod-a', [gateway, gateway]).got).toBe('passed')
    expect(evaluate(refused, 'pod-a', [broken]).got).toBe('broken (ECONNRESET)')
  })
})

it('says what is expected', () => {
  expect(expectationText(keepsSource(['a1', 'b1']))).toBe('a1 b1, source kept')
  expect(expectationText(masqueraded(['a1:9090']))).toBe('a1:9090, from the node')
  expect(expectationText(reaches(['a1', 'b1'], { hits: 'one' }))).toBe('one of a1 b1')
  expect(expectationText(dropped)).toBe('dropped')
})

describe('deviations', () => {
  const [first, second] = [
    { cells: ['*'], expecting: { source: 'kept' }, reason: 'r', link: 'l', instead: { source: 'node' } },
    { cells: ['a/*.v4', 'b'], reason: 's', link: 'l', instead: { outcome: 'passed' } },
  ] as const
  it('are found by pattern and by what the cell expects', () => {
    expect(deviationOf([first, second], 'x/y', keepsSource(['a1']))).toBe(first)
    expect(deviationOf([first, second], 'x/y', masqueraded(['a1']))).toBeUndefined()
    expect(deviationOf([first, second], 'a/y.v4', refused)).toBe(second)
    expect(deviationOf([first, second], 'a/y.v6', refused)).toBeUndefined()
  })

  it('change a part of the expectation, or all of it', () => {
    expect(deviated(keepsSource(['a1']), first)).toEqual(masqueraded(['a1']))
    expect(deviated(refused, second)).toEqual(passed)
  })
})

it('matches patterns as a whole, with * for anything', () => {
  expect(matchesAny(['a*'], 'abc')).toBe(true)
  expect(matchesAny(['a/*/c.v4'], 'a/b/c.v4')).toBe(true)
  expect(matchesAny(['a.v4'], 'axv4')).toBe(false)
  expect(matchesAny(['b'], 'abc')).toBe(false)
  expect(matchesAny([], 'a')).toBe(false)
})
