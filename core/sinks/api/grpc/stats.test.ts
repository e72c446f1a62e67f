import { expect, test } from 'vitest'
import { Stats } from './stats.js'
import { KeptLog } from './testing/server.js'

test('a fault is told once a minute, of TLS each reason by itself, with the peer and how often it came', () => {
  const log = new KeptLog()
  let nowMs = 0
  const stats = new Stats(log, () => nowMs)
  for (let second = 0; second <= 60; second++) {
    nowMs = second * 1000
    stats.fault('tls', { peer: `192.0.2.${second}:1`, error: 'no certificate' })
    stats.fault('tls', { peer: '192.0.2.99:1', error: 'no TLS' })
    stats.fault('protocol', { peer: '192.0.2.99:1', error: `nonsense ${second}` })
  }
  expect(stats.faults).toMatchObject({ tls: 122, protocol: 61 })
  const loud = log.lines.filter((line) => line.startsWith('W ')).map((line) => line.replace(/^W .*? peer=/, ''))
  expect(loud).toEqual([
    '"192.0.2.0:1" error="no certificate" times=1',
    '"192.0.2.99:1" error="no TLS" times=1',
    '"192.0.2.99:1" error="nonsense 0" times=1',
    '"192.0.2.60:1" error="no certificate" times=61',
    '"192.0.2.99:1" error="no TLS" times=61',
    '"192.0.2.99:1" error="nonsense 60" times=61',
  ])
})
