import { setImmediate as nextLoop } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Turns } from './turns.js'

/** For each of some workers, in which round of the event loop it was its turn. */
async function roundsOf(turns: Turns, workers: number): Promise<number[]> {
  let round = 0
  const rounds: number[] = []
  const work = async () => {
    await turns.next()
    rounds.push(round)
  }
  const working = Promise.all(Array.from({ length: workers }, work))
  while (rounds.length < workers) {
    await nextLoop()
    round++
  }
  await working
  return rounds
}

test('when a turn is over, everything else has its time before the next one', async () => {
  const rounds = await roundsOf(new Turns(0), 10)
  expect(new Set(rounds).size).toBe(10)
})

test('as many work in one turn as there is time', async () => {
  const rounds = await roundsOf(new Turns(60_000), 1000)
  expect(new Set(rounds).size).toBe(1)
})

test('they work in the order of asking', async () => {
  const turns = new Turns(0)
  const order: number[] = []
  await Promise.all([1, 2, 3].map((worker) => turns.next().then(() => order.push(worker))))
  expect(order).toEqual([1, 2, 3])
})

test('a turn is over after its time', async () => {
  const turns = new Turns(5)
  expect(turns.isOver).toBe(true)
  await turns.next()
  expect(turns.isOver).toBe(false)
  const end = performance.now() + 5
  while (performance.now() < end);
  expect(turns.isOver).toBe(true)
})
