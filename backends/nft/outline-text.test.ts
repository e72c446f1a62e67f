import { describe, expect, test } from 'vitest'
import { outlineIn, secondsIn } from './outline-text.js'

/** As nft 1.0.6 prints it. */
const listed = (parts: { policy?: string; rule?: string; time?: string; flags?: string; more?: string } = {}) => {
  const { policy = 'accept', rule = 'jump services', time = '10m', flags = '', more = '' } = parts
  const remember = (protocol: string) =>
    `\t\tupdate @affinity { ct original ip saddr . ct original ip daddr . meta l4proto . ct original proto-dst timeout ${time} : ip daddr . ${protocol} dport }\n`
  return (
    `table ip kpng {\n${flags}\tset cluster-ips {\n\t\ttype ipv4_addr\n\t}\n\n` +
    `\tset rules-0123456789abcdef {\n\t\ttype mark\n\t}\n\n${more}` +
    `\tchain dnat-prerouting {\n\t\ttype nat hook prerouting priority dstnat; policy ${policy};\n\t\t${rule}\n\t}\n\n` +
    `\tchain remember-600 {\n${['tcp', 'udp', 'sctp'].map(remember).join('')}\t}\n}\n`
  )
}

describe('the outline of a table that nft lists', () => {
  const usual = outlineIn('ip', listed())

  test('has its sets and the chains that remember', () => {
    expect(usual.sets).toEqual(new Set(['cluster-ips', 'rules-0123456789abcdef']))
    expect(usual.rememberChains).toEqual(new Map([['remember-600', true]]))
  })

  test.each([
    ['policy', { policy: 'drop' }],
    ['rule', { rule: 'accept' }],
    ['flag of the table', { flags: '\tflags dormant\n' }],
    ['set more', { more: '\tset foreign {\n\t\ttype mark\n\t}\n\n' }],
    ['chain more', { more: '\tchain foreign {\n\t}\n\n' }],
  ])('another %s is another digest', (_, parts) => {
    expect(outlineIn('ip', listed(parts)).digest).not.toBe(usual.digest)
  })

  test('the seal and the number of elements are no part of it', () => {
    const sealed = listed().replace('rules-0123456789abcdef', 'rules-fedcba9876543210')
    expect(outlineIn('ip', sealed).digest).toBe(usual.digest)
    const counted = listed().replace('\t\ttype ipv4_addr', '\t\ttype ipv4_addr # count 7')
    expect(outlineIn('ip', counted).digest).toBe(usual.digest)
  })

  test('a chain that remembers for another time than its name says is not ours', () => {
    expect(outlineIn('ip', listed({ time: '1h' })).rememberChains).toEqual(new Map([['remember-600', false]]))
  })

  test('times', () => {
    expect(['4s', '10m', '3h', '1d2h3m4s'].map(secondsIn)).toEqual([4, 600, 10_800, 93_784])
  })
})
