import { execFileSync } from 'node:child_process'
import type { FrontendAddress } from '@kpng/client'
import { enterNewNamespace, whyNoLab } from '@kpng/linux/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { readKubeProxy } from './index.js'
import { ip6tablesRules, iptablesRules, nftablesRules } from './testing/rules.js'

// kube-proxy's rules, written by hand, in a kernel, and read back by the real programs. Needs root.

const why = whyNoLab('nft', 'iptables-nft', 'ip6tables-nft')
if (why !== undefined) console.warn(`SKIPPED: reading kube-proxy's rules back from the kernel: ${why}`)
const load = (program: string, args: readonly string[], input: string) => void execFileSync(program, args, { input })

const at = (address: string, port: number, more: Partial<FrontendAddress> = {}): FrontendAddress => ({
  ...{ kind: 'clusterIP', family: address.includes(':') ? 'IPv6' : 'IPv4', address, protocol: 'tcp', port },
  ...more,
})

const modes = {
  nftables: () => load('nft', ['-f', '-'], nftablesRules),
  iptables: () => {
    load('iptables-nft-restore', [], iptablesRules)
    load('ip6tables-nft-restore', [], ip6tablesRules)
  },
} as const

describe.skipIf(why !== undefined).each(['nftables', 'iptables'] as const)('%s', (mode) => {
  beforeAll(async () => {
    await enterNewNamespace()
    modes[mode]()
  })

  test('what was written is what is held', async () => {
    const { mode: found, held, notes } = await readKubeProxy()
    expect([found, notes]).toEqual([mode, []])
    const web = ['10.244.1.5:8080', '10.244.2.7:8080']
    const local = ['10.244.2.8:8080', '10.244.3.8:8080']
    expect(await held(at('10.96.0.10', 80))).toEqual({ inside: web, outside: web, otherwise: 'refuse' })
    expect(await held(at('', 30080, { kind: 'nodePort' }))).toEqual({ inside: web, outside: web, otherwise: 'refuse' })
    expect(await held(at('10.96.0.13', 80))).toEqual({ inside: local, outside: local, otherwise: 'refuse' })
    expect(await held(at('192.0.2.10', 80, { kind: 'loadBalancerIP' }))).toEqual({
      ...{ inside: local, outside: [], otherwise: 'drop' },
    })
    expect(await held(at('10.96.0.11', 80))).toEqual({ inside: [], outside: [], otherwise: 'refuse' })
    expect(await held(at('10.96.0.12', 53, { protocol: 'udp' }))).toEqual({
      ...{ inside: ['10.244.1.6:5353'], outside: ['10.244.1.6:5353'], otherwise: 'refuse' },
      sessionAffinity: mode === 'nftables' ? [{ client: '10.244.9.9', endpoint: '10.244.1.6:5353' }] : [],
    })
    expect(await held(at('fd00:96::10', 80))).toMatchObject({ inside: ['[fd00:244::5]:8080'] })
    expect(await held(at('10.96.0.99', 80))).toBeUndefined()
  })
})

test.skipIf(why !== undefined)('without rules, a sentence says so', async () => {
  await enterNewNamespace()
  await expect(readKubeProxy()).rejects.toThrow(/^There are no rules of kube-proxy on this machine/)
})
