import { execFileSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { whyNoLab } from '@kpng/linux/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { userspaceBackend } from '../backend.js'
import { Cluster, endpoint, TCP, UDP } from '../testing/cluster.js'
import { iptablesCapture } from './iptables.js'
import { nftCapture } from './nft.js'
import { type RunProgram, runProgram } from './program.js'

// A proxy whose Services do not change looks at its rules every period and writes nothing. The kernel is real; the rules are in a
// namespace of their own.

describe.each(['nft', 'iptables'] as const)('an idle proxy with %s portals', (how) => {
  const missing = whyNoLab(how)
  if (missing !== undefined) {
    console.warn(`SKIPPED: idle proxies with ${how} portals: ${missing}`)
    it.skip(`skipped: ${missing}`, () => {})
    return
  }
  const namespace = `kpng-idle-${process.pid}-${how}`
  beforeAll(() => void execFileSync('ip', ['netns', 'add', namespace]))
  afterAll(() => void execFileSync('ip', ['netns', 'del', namespace]))

  const inside: RunProgram = (program, args, input) =>
    runProgram('ip', ['netns', 'exec', namespace, program, ...args], input)
  const detectLocal = { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd44::/16'] } as const

  // Each look starts a program in the namespace, which takes its time on a busy machine.
  const timeout = 120_000

  it('writes nothing, until something changes or somebody else changes its rules', { timeout }, async () => {
    let looks = 0
    const writes: string[] = []
    const run: RunProgram = async (program, args, input) => {
      if (program.endsWith('-save') || args[1] === 'table') looks++
      if (input !== undefined && args[0] !== '-c') writes.push(input)
      if (args.includes('-I') || args.includes('-A')) writes.push(args.join(' '))
      return inside(program, args, input)
    }
    const capture = how === 'nft' ? nftCapture({ log: silentLog, run }) : iptablesCapture({ log: silentLog, run })
    const backend = userspaceBackend({
      capture,
      syncPeriodMs: 20,
      driftCheckIntervalMs: 0,
      detectLocal,
    })
    /** What was written while it looked several times. */
    const written = async (periods = 3) => {
      const enough = looks + periods * (how === 'nft' ? 2 : 4)
      await until('it has looked', () => looks >= enough, timeout)
      return writes.splice(0)
    }
    const writtenAgain = (text: string) =>
      until('it is written again', () => writes.some((written) => written.includes(text)), timeout)
    const set = (name: string, last: number, ...endpoints: string[]) =>
      cluster.set(
        name,
        {
          ips: {
            clusterIps: { v4: [`10.96.0.${last}`], v6: [`fd96::${last}`] },
            loadBalancerIps: { v4: [`198.51.100.${last}`], v6: [`2001:db8::${last}`] },
          },
          ports: [
            { name: 'tcp', protocol: TCP, port: 80, targetPort: 80, nodePort: 30_000 + last },
            { name: 'udp', protocol: UDP, port: 80, targetPort: 80, nodePort: 30_000 + last },
          ],
          externalTrafficToLocal: true,
          ipFilters: [{ sourceRanges: ['0.0.0.0/0', '::/0', '192.0.2.1/32', '192.0.2.128/25'] }],
        },
        endpoints.map((ip) => endpoint(ip)),
      )
    const cluster = new Cluster(backend)
    try {
      await backend.setup({ requestFullSync: () => {} })
      await cluster.setNode({ addresses: ['10.70.0.1', 'fd70::1'], podCidrs: ['10.244.1.0/24', '10.245.1.0/24'] })
      await set('web', 1, '10.244.1.2', 'fd44::2')
      await set('empty', 2)
      writes.length = 0
      expect(await written()).toEqual([])

      await set('shop', 3, '10.244.1.2')
      expect(writes.length).toBeGreaterThan(0)
      writes.length = 0
      expect(await written()).toEqual([])

      const spoil =
        how === 'nft'
          ? ['nft', 'delete', 'element', 'ip', 'kpng-userspace', 'portals', '{ 10.96.0.1 . tcp . 80 }']
          : ['iptables', '-t', 'nat', '-D', 'KPNG-PORTALS-HOST', '1']
      await inside(spoil[0] as string, spoil.slice(1))
      await writtenAgain('10.96.0.1')
      await written(1)
      expect(await written()).toEqual([])

      const remove =
        how === 'nft'
          ? ['nft', 'flush', 'chain', 'ip6', 'kpng-userspace', 'nat-output']
          : ['ip6tables', '-t', 'nat', '-F']
      await inside(remove[0] as string, remove.slice(1))
      await writtenAgain('fd96::1')
      await written(1)
      expect(await written()).toEqual([])
    } finally {
      await backend.close()
    }
  })

  it('writes its rules again when they were flushed, long before the next period', { timeout }, async () => {
    const options = { log: silentLog, run: inside }
    const capture = how === 'nft' ? nftCapture(options) : iptablesCapture(options)
    const backend = userspaceBackend({ capture, syncPeriodMs: 0, driftCheckIntervalMs: 20, detectLocal })
    const cluster = new Cluster(backend)
    const rules = async () =>
      how === 'nft'
        ? inside('nft', ['list', 'ruleset'])
        : `${await inside('iptables-save', [])}${await inside('ip6tables-save', [])}`
    const areThere = async () => {
      const text = await rules()
      return text.includes('10.96.0.1') && text.includes('fd96::1')
    }
    try {
      await backend.setup({ requestFullSync: () => {} })
      await cluster.setNode({ addresses: ['10.70.0.1', 'fd70::1'], podCidrs: ['10.244.1.0/24'] })
      await cluster.set(
        'web',
        {
          ips: { clusterIps: { v4: ['10.96.0.1'], v6: ['fd96::1'] } },
          ports: [{ name: 'tcp', protocol: TCP, port: 80, targetPort: 80 }],
        },
        [endpoint('10.244.1.2'), endpoint('fd44::2')],
      )
      expect(await areThere()).toBe(true)
      const flushes =
        how === 'nft'
          ? [['nft', 'flush', 'ruleset']]
          : [
              ['iptables', '-t', 'nat', '-F'],
              ['ip6tables', '-t', 'nat', '-F'],
            ]
      for (const [program = '', ...args] of flushes) {
        await inside(program, args)
        await until('they are written again', areThere, timeout)
      }
    } finally {
      await backend.close()
    }
  })
})
