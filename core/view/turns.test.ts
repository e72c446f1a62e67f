import { expect, test } from 'vitest'
import { finish, SharedWork, type Work } from './turns.js'

test('work that several callers need is done once', () => {
  let steps = 0
  function* counting(): Work<string> {
    for (; steps < 3; steps++) yield
    return 'done'
  }
  const shared = new SharedWork(counting())
  const [first, second] = [shared.finish(), shared.finish()]
  first.next()
  second.next()
  expect(finish(first)).toBe('done')
  expect(finish(second)).toBe('done')
  expect(steps).toBe(3)
})

test('work that fails fails for all who need it', () => {
  function* failing(): Work<string> {
    yield
    throw new Error('no memory')
  }
  const shared = new SharedWork(failing())
  expect(() => finish(shared.finish())).toThrow('no memory')
  expect(() => finish(shared.finish())).toThrow('no memory')
})
