import { describe, expect, test } from 'vitest'
import { milliseconds, optionsFromArguments } from './options.js'

describe('durations', () => {
  test.each([
    ['1s', 1000],
    ['500ms', 500],
    ['1m30s', 90_000],
    ['0.5h', 1_800_000],
    ['.5s', 500],
    ['0', 0],
  ])('%s', (text, expected) => {
    expect(milliseconds('--error-delay', text)).toBe(expected)
  })

  test.each(['', '1', '1x', 's', '1s!', '-1s'])('"%s" is none', (text) => {
    expect(() => milliseconds('--error-delay', text)).toThrow(/--error-delay takes a duration/)
  })
})

test('the command line of a program gives the options', () => {
  const options = optionsFromArguments([
    '--api',
    'a:1',
    '--node-name',
    'n',
    '--error-delay',
    '2s',
    '--tls-ca',
    '/dev/null',
    '--once',
    '-v',
    '3',
  ])
  expect(options).toMatchObject({
    api: 'a:1',
    nodeName: 'n',
    errorDelayMs: 2000,
    tls: { caFile: '/dev/null' },
    once: true,
  })
  expect(options.log?.shows(3)).toBe(true)
  expect(optionsFromArguments([]).api).toBe('127.0.0.1:12090')
  expect(() => optionsFromArguments(['--nod-name', 'n'])).toThrow("Unknown option '--nod-name'.")
  expect(() => optionsFromArguments(['--api', 'nowhere'])).toThrow('"nowhere"')
  for (const words of ['-v=3', '--v=3', '--v 3', '-v3']) {
    expect(optionsFromArguments(words.split(' ')).log.shows(3)).toBe(true)
  }
})
