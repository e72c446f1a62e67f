import { expect, it } from 'vitest'
import { textLog } from './log.js'

it('writes a line with severity, time, message and fields', () => {
  const lines: string[] = []
  let verbosity = 1
  const log = textLog({ verbosity: () => verbosity, write: (line) => lines.push(line) })
  log.warn('Cannot connect', { api: '127.0.0.1:12090', attempts: 2, error: new Error('refused') })
  log.info('Changed', { from: undefined, to: 'WATCHING' })
  log.detail(2, 'not shown')
  verbosity = 2
  log.detail(2, 'shown')
  expect(log.shows(3)).toBe(false)
  expect(lines.map((line) => line.replace(/\d{4} [\d:]+\.\d{3}/, 'TIME'))).toEqual([
    'WTIME Cannot connect api="127.0.0.1:12090" attempts=2 error="refused"\n',
    'ITIME Changed to="WATCHING"\n',
    'ITIME shown\n',
  ])
})
