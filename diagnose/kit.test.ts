import { describe, expect, test } from 'vitest'
import type { Host } from '../conformance/addresses.js'
import type { Expectation } from '../conformance/cases/case.js'
import { cases } from '../conformance/cases/index.js'
import { deviated, deviationOf } from '../conformance/deviations/deviation.js'
import { backendNames, deviationsOf, isKpng } from '../conformance/deviations/index.js'
import { expectationText } from '../conformance/evaluation/evaluate.js'
import { type Round, roundsOf } from '../conformance/runner/rounds.js'
import { iptablesModeFeatures } from '../dataplane/route.js'
import {
  agrees,
  hasRightVerdict,
  isNewConnection,
  kitBackends,
  type Prediction,
  predictor,
  wasMeasured,
} from './testing/kit-prediction.js'

// What `explain` says is what the kit expects of each backend, in every cell. The kit itself proves that packets do the same.

test('every backend of kpng that the kit knows is asked', () => {
  expect(Object.keys(kitBackends)).toEqual(backendNames.filter(isKpng))
})

test("kpng's iptables backend does what kube-proxy's iptables mode does", () => {
  expect(kitBackends.iptables?.features).toMatchObject(iptablesModeFeatures)
})

const rounds = roundsOf(cases).map((round, index): [number, Round] => [index + 1, round])

describe.each(Object.entries(kitBackends))('%s', (name, backend) => {
  const deviations = deviationsOf(name)
  const canStandBeside = name === 'nft' || name === 'iptables'

  test.each(rounds)('round %i of the kit: a new connection goes where the kit expects it', async (_, round) => {
    const predict = await predictor(round, backend)
    const cells = round.cells.filter(
      (placed) => isNewConnection(placed) && (canStandBeside || !placed.case.specialised),
    )
    const wrong: string[] = []
    for (const { id, cell } of cells) {
      const prediction = await predict(cell)
      const deviation = deviationOf(deviations, id, cell.expect)
      const expected = deviation ? deviated(cell.expect, deviation) : cell.expect
      if (!agrees(expected, cell.client, prediction)) {
        wrong.push(`${id}: expected ${expectationText(expected)}, predicted ${expectationText(prediction.as)}`)
      }
      const { verdict } = prediction.explanation.diagnosis
      if (!hasRightVerdict(prediction)) wrong.push(`${id}: ${expectationText(prediction.as)} is called ${verdict}`)
    }
    expect(wrong).toEqual([])
  })
})

describe('a prediction and what the kit has measured', () => {
  const reached = { outcome: 'reached', servers: ['a1:8080', 'b1:8080'], source: 'kept' } as const
  test.each<[string, Host, Expectation, boolean]>([
    ['a1:8080, source kept', 'pod-a', reached, true],
    ['3× a1:8080, source kept; 5× b1:8080, source kept', 'pod-a', reached, true],
    ['3× a1:8080, source kept; 5× b2:8080, source kept', 'pod-a', reached, false],
    ['a1:8080, from the node', 'pod-a', reached, false],
    ['a1:8080, from the node', 'node-a', reached, true],
    ['7× a1:8080, source kept; 1× dropped', 'pod-a', reached, false],
    ['dropped', 'pod-a', { outcome: 'dropped' }, true],
    ['refused', 'pod-a', { outcome: 'dropped' }, false],
    ['broken (reset)', 'pod-a', { outcome: 'broken' }, true],
    ['passed', 'pod-a', reached, false],
  ])('%s from %s', (got, client, as, isSame) => {
    expect(wasMeasured(got, client, { as } as Prediction)).toBe(isSame)
  })
})
