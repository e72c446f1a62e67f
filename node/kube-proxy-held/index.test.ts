import { KpngError } from '@kpng/api'
import type { FrontendAddress } from '@kpng/client'
import { describe, expect, test } from 'vitest'
import { type RunProgram, readKubeProxy } from './index.js'
import { ip6tablesRules, iptablesRules } from './testing/rules.js'

// Which programs are asked, and what their output means. kernel.test.ts reads the same rules back from a kernel.

/** A machine where programs print this, and where all others are missing. */
const machine =
  (answers: Readonly<Record<string, string | Error>>): RunProgram =>
  async (program, args) => {
    const answer = answers[[program, ...args].join(' ')]
    if (answer instanceof Error) throw answer
    return answer
  }

const at = (address: string, port: number, more: Partial<FrontendAddress> = {}): FrontendAddress => ({
  ...{ kind: 'clusterIP', family: address.includes(':') ? 'IPv6' : 'IPv4', address, protocol: 'tcp', port },
  ...more,
})

describe('iptables', () => {
  const saved = { 'iptables-nft-save': '', 'iptables-legacy-save': iptablesRules, 'ip6tables-save': ip6tablesRules }

  test.each([
    [at('10.96.0.10', 80), { inside: ['10.244.1.5:8080', '10.244.2.7:8080'] }],
    [at('', 30080, { kind: 'nodePort' }), { outside: ['10.244.1.5:8080', '10.244.2.7:8080'] }],
    [at('192.0.2.10', 80), { inside: ['10.244.2.8:8080', '10.244.3.8:8080'], outside: [], otherwise: 'drop' }],
    [at('10.96.0.11', 80), { inside: [], outside: [], otherwise: 'refuse' }],
    [at('10.96.0.12', 53, { protocol: 'udp' }), { inside: ['10.244.1.6:5353'], sessionAffinity: [] }],
    [at('fd00:96::10', 80), { inside: ['[fd00:244::5]:8080'] }],
  ])('$address $port', async (frontend, expected) => {
    const { mode, held } = await readKubeProxy(machine(saved))
    expect(mode).toBe('iptables')
    expect(await held(frontend)).toMatchObject(expected)
  })

  test('a frontend without rules, and a health-check node port, are not held', async () => {
    const { held } = await readKubeProxy(machine(saved))
    expect(await held(at('10.96.0.99', 80))).toBeUndefined()
    expect(await held(at('10.96.0.10', 80, { protocol: 'udp' }))).toBeUndefined()
    expect(await held(at('', 30000, { kind: 'nodePort' }))).toBeUndefined()
  })
})

const emptyTable = '{"nftables":[{"metainfo":{}},{"table":{"family":"ip","name":"kube-proxy"}}]}'
const missing = new KpngError('refused', '`nft` failed: Error: No such file or directory')

test('rules in both modes: those that serve more are read, and it is said', async () => {
  const { mode, notes } = await readKubeProxy(
    machine({
      'nft -j list table ip kube-proxy': emptyTable,
      'nft -j list table ip6 kube-proxy': missing,
      'iptables-save': iptablesRules,
    }),
  )
  expect(mode).toBe('iptables')
  expect(notes.join()).toMatch(/^There are rules of kube-proxy in nftables and in iptables\. Those of mode iptables/)
})

test.each([
  ['nothing is installed', {}, /^There are no rules of kube-proxy on this machine/],
  ['nothing is there', { 'nft -j list table ip kube-proxy': missing, 'iptables-save': '' }, /^There are no rules/],
  [
    'mode ipvs',
    {
      'iptables-save':
        '*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT\n',
    },
    /runs in mode ipvs/,
  ],
  [
    'the same chains of kpng',
    { 'iptables-save': `*nat\n:KPNG-OWNER-kpng - [0:0]\n${iptablesRules}` },
    /are those of kpng: ask with --held kpng/,
  ],
  [
    'no permission',
    { 'iptables-save': new KpngError('refused', '`iptables-save` failed: Permission denied (you must be root)') },
    /cannot be read: .* Ask as root\.$/,
  ],
  ['an nft without JSON', { 'nft -j list table ip kube-proxy': 'table ip kube-proxy {' }, /built with JSON support/],
])('%s', async (_, answers, expected) => {
  await expect(readKubeProxy(machine(answers as Record<string, string>))).rejects.toThrow(expected)
})
