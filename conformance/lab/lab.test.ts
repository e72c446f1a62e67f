import { families } from '@kpng/api'
import { namespacesOf, whySkipped } from '@kpng/linux/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import '../../cli/testing/compiled.js'
import { bundledAgent } from '../../linux/testing/bundle.js'
import { addressOf, type Host, hosts, podPorts } from '../addresses.js'
import { type Lab, startLab } from './lab.js'
import { topology } from './topology.js'

const why = whySkipped('the lab of the kit')

describe('the topology', () => {
  it('connects every host, by names that interfaces can have', () => {
    const ends = topology.links.flat()
    expect(new Set(ends.map(({ host }) => host))).toEqual(new Set(hosts))
    for (const { device } of ends) expect(device.length).toBeLessThanOrEqual(15)
    expect(new Set(ends.map(({ host, device }) => `${host} ${device}`)).size).toBe(ends.length)
  })

  it('has a default route in each family everywhere', () => {
    for (const host of hosts) {
      const defaults = topology.lines[host].filter((line) => line.startsWith('route add default'))
      expect(defaults).toHaveLength(families.length)
    }
  })
})

describe.skipIf(why !== undefined)('a lab', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab(await bundledAgent())
  })
  afterAll(async () => {
    await lab?.close()
    expect(await namespacesOf(process.pid)).toEqual([])
  })

  const clients: readonly Host[] = ['pod-a', 'pod-b', 'node-a', 'node-b', 'outside', 'a1', 'b2']
  const servers = ['a1', 'a2', 'b1', 'b2', 'node-a'] as const

  it.each(families)('lets everybody reach every server directly, with the own address, over %s', async (family) => {
    const wrong: string[] = []
    for (const protocol of ['TCP', 'UDP'] as const) {
      for (const client of clients) {
        const asked = servers.map(async (server) => {
          const to = { protocol, ip: addressOf[server][family], port: podPorts[0] }
          const seen = await lab.agents[client].call('probe', { to, timeoutMs: 2000 })
          const expected = { outcome: 'reached', server, from: addressOf[client][family], port: podPorts[0] }
          if (JSON.stringify(seen) !== JSON.stringify(expected))
            wrong.push(`${client} ${server} ${JSON.stringify(seen)}`)
        })
        await Promise.all(asked)
      }
    }
    expect(wrong).toEqual([])
  })

  it.each(families)('tells refused from dropped over %s', async (family) => {
    for (const protocol of ['TCP', 'UDP'] as const) {
      const ask = (ip: string, port: number) =>
        lab.agents['pod-a'].call('probe', { to: { protocol, ip, port }, timeoutMs: 700 })
      expect(await ask(addressOf.b1[family], 9)).toEqual({ outcome: 'refused' })
      // The gateway has no route for this one, and says nothing since it does not forward.
      expect(await ask({ IPv4: '198.18.0.1', IPv6: '2001:db8:ffff::1' }[family], 80)).toEqual({ outcome: 'dropped' })
    }
  })

  it('asks again over the same flow', async () => {
    const to = { protocol: 'UDP', ip: addressOf.b1.IPv4, port: podPorts[0] } as const
    const tcp = { ...to, protocol: 'TCP' } as const
    for (const place of [to, tcp, to, tcp]) {
      const seen = await lab.agents['pod-a'].call('probe', { to: place, timeoutMs: 1000, flow: place.protocol })
      expect(seen).toMatchObject({ outcome: 'reached', server: 'b1' })
    }
  })
})
