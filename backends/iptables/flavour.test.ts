import { expect, test } from 'vitest'
import { chooseFlavour, type Flavour } from './flavour.js'
import { restoreFailure } from './restore.js'
import { parseSaved } from './save.js'

const hint = '*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n'
const own = '*nat\n:KPNG-OWNER-kpng - [0:0]\n-A KUBE-SERVICES -j KUBE-NODEPORTS\nCOMMIT\n'
const rules = (count: number) => `*filter\n${'-A INPUT -j ACCEPT\n'.repeat(count)}COMMIT\n`

test.each<[string, Partial<Record<Flavour, string>>, Flavour | undefined, boolean]>([
  ['nothing anywhere: the default', { nft: '', legacy: '' }, undefined, false],
  ['neither installed under its name: the default', {}, undefined, false],
  ['the kubelet is in nft', { nft: hint, legacy: rules(3) }, 'nft', false],
  ['the kubelet is in legacy', { nft: rules(3), legacy: hint }, 'legacy', false],
  ['the kubelet is in both: nft', { nft: hint, legacy: hint }, 'nft', false],
  ['the kubelet in legacy, kpng was in nft', { nft: own, legacy: hint }, 'legacy', false],
  ['kpng was in legacy', { nft: rules(3), legacy: own }, 'legacy', false],
  ['more rules in legacy', { nft: rules(1), legacy: rules(2) }, 'legacy', true],
  ['more rules in nft', { nft: rules(2), legacy: rules(1) }, 'nft', true],
  ['as many in both: the default', { nft: rules(2), legacy: rules(2) }, undefined, true],
])('%s', (_, saved, flavour, isMixed) => {
  const found = new Map(Object.entries(saved) as [Flavour, string][])
  expect(chooseFlavour(found, 'KPNG-OWNER-kpng')).toMatchObject({ flavour, isMixed })
})

test.each([
  [
    'iptables-nft-restore v1.8.9 (nf_tables): \nline 3: CHAIN_DEL failed (Device or resource busy): chain X',
    /line 3 \(-A B\).*busy/,
  ],
  ["Couldn't load target `NOPE'\n\nError occurred at line: 2", /line 2 \(-A A\).*NOPE/],
  ['Another app is currently holding the xtables lock; waited 10s', /waited 10 s for the lock.*fuser/],
  ['it ended with code 1', /failed: it ended with code 1/],
])('a failure names the line and what stands there: %s', (said, expected) => {
  expect(restoreFailure('iptables-restore', '*nat\n-A A\n-A B\nCOMMIT\n', said, 10).message).toMatch(expected)
})

test('a table that iptables cannot read is not taken for an empty one', () => {
  const saved = "# Table `nat' is incompatible, use 'nft' tool.\n"
  expect(() => parseSaved(saved)).toThrow(/The table nat has rules that iptables cannot read/)
})
