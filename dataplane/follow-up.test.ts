import { describe, expect, test } from 'vitest'
import { briefly, FollowUp } from './follow-up.js'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('work that follows syncs', () => {
  test('is done one round at a time, and what is asked for meanwhile is done together', async () => {
    const rounds: string[][] = []
    let atWork = 0
    const work = new FollowUp<string, number>(async (requests) => {
      expect(++atWork).toBe(1)
      rounds.push([...requests])
      await pause(5)
      atWork--
      return rounds.length
    })
    const first = work.ask('a')
    expect(rounds).toEqual([['a']])
    const [second, third] = [work.ask('b'), work.ask('c')]
    expect(await first).toBe(1)
    const fourth = work.ask('d')
    expect(await Promise.all([second, third])).toEqual([2, 2])
    expect(await fourth).toBe(rounds.length)
    await work.settled()
    expect(rounds.flat()).toEqual(['a', 'b', 'c', 'd'])
    expect(await work.ask('e')).toBe(rounds.length)
  })

  test('is waited for only briefly', async () => {
    expect(await briefly(Promise.resolve(1))).toBe(1)
    const long = pause(2000).then(() => 2)
    const startedMs = performance.now()
    expect(await briefly(long)).toBeUndefined()
    expect(performance.now() - startedMs).toBeLessThan(1000)
  })
})
