import { silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { formatLine } from '../log.js'
import { ConnectionLog } from './connection-log.js'

/** A log and a clock that the test turns. */
function connection() {
  const lines: string[] = []
  let nowMs = 0
  const say = (message: string, fields = {}) => void lines.push(formatLine(message, fields))
  const log = new ConnectionLog({ ...silentLog, info: say, warn: say }, () => nowMs)
  return { log, lines, pass: (ms: number) => (nowMs += ms) }
}

test('the same reason is said once and then once a minute, with how often it came', () => {
  const { log, lines, pass } = connection()
  for (let second = 0; second <= 120; second++) {
    log.failed('a:1', 'no')
    pass(1000)
  }
  expect(lines).toEqual([
    'No connection; trying again api="a:1" reason="no"',
    'No connection; trying again api="a:1" reason="no" times=61',
    'No connection; trying again api="a:1" reason="no" times=121',
  ])
})

test('another reason, and another address, is said at once', () => {
  const { log, lines } = connection()
  for (const [api, reason] of [
    ['a:1', 'no'],
    ['b:1', 'no'],
    ['a:1', 'never'],
    ['a:1', 'no'],
    ['b:1', 'no'],
  ] as const) {
    log.failed(api, reason)
  }
  expect(lines).toHaveLength(3)
})

test('a connection is said, with how many tries it took, and after it everything is new', () => {
  const { log, lines } = connection()
  log.connected('a:1')
  log.lost('a:1', 'gone')
  log.failed('a:1', 'no')
  log.failed('a:1', 'no')
  log.connected('a:1')
  log.lost('a:1', 'gone')
  expect(lines).toEqual([
    'Connected api="a:1"',
    'Connection lost; connecting again api="a:1" reason="gone"',
    'No connection; trying again api="a:1" reason="no"',
    'Connected again api="a:1" failedTries=2',
    'Connection lost; connecting again api="a:1" reason="gone"',
  ])
})
