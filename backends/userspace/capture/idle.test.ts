import { spawnSync } from 'node:child_process'
import { type Log, silentLog } from '@kpng/api'
import { loadLibc, NETLINK_NETFILTER, NetlinkSocket } from '@kpng/linux'
import { readNftGeneration } from '@kpng/linux/nftables'
import { enterNewNamespace, whySkipped } from '@kpng/linux/testing'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { type UserspaceBackend, userspaceBackend } from '../backend.js'
import type { UserspaceOptions } from '../options.js'
import { Cluster, endpoint, TCP, UDP } from '../testing/cluster.js'
import { nftCapture } from './nft.js'

// A proxy whose Services do not change looks at its rules every period and writes nothing. The kernel is real; the rules are in a
// namespace of their own.

/** Limits only for hangs. */
const timeout = 120_000

function nft(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('nft', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

describe.skipIf(whySkipped('idle proxies with nft portals', 'nft') !== undefined)(
  'an idle proxy with nft portals',
  () => {
    let socket: NetlinkSocket
    let backend: UserspaceBackend | undefined
    beforeAll(async () => {
      await enterNewNamespace()
      spawnSync('ip', ['link', 'set', 'lo', 'up'])
      socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
    })
    afterEach(async () => {
      await backend?.close()
      backend = undefined
    })

    async function start(options: UserspaceOptions, log: Log = silentLog) {
      const reasons: string[] = []
      backend = userspaceBackend({
        capture: nftCapture({ log }),
        detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd44::/16'] },
        ...options,
      })
      const cluster = new Cluster(backend)
      await backend.setup({ requestFullSync: (reason) => void reasons.push(reason) })
      await cluster.setNode({ addresses: ['10.70.0.1', 'fd70::1'], podCidrs: ['10.244.1.0/24', '10.245.1.0/24'] })
      return { cluster, reasons }
    }

    const set = (cluster: Cluster, name: string, last: number, ...endpoints: string[]) =>
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
          ipFilters: [{ sourceRanges: ['192.0.2.1/32', '192.0.2.128/25', '2001:db8:1::/48'] }],
        },
        endpoints.map((ip) => endpoint(ip)),
      )

    it('writes nothing in its periods, one transaction for a change, and again what somebody deleted', {
      timeout,
    }, async () => {
      let periods = 0
      const log: Log = {
        ...silentLog,
        shows: () => true,
        warn: (message) => {
          if (message.includes('written again')) warnings++
        },
      }
      let warnings = 0
      const capture = nftCapture({ log })
      const missing = capture.missing?.bind(capture)
      capture.missing = () => {
        periods++
        return missing?.() ?? Promise.resolve(undefined)
      }
      const { cluster } = await start({ capture, syncPeriodMs: 20, driftCheckIntervalMs: 20 }, log)
      await set(cluster, 'web', 1, '10.244.1.2', 'fd44::2')
      await set(cluster, 'empty', 2)
      const idle = async () => {
        const [generation, enough] = [await readNftGeneration(socket), periods + 3]
        await until('it has looked', () => periods >= enough, timeout)
        expect(await readNftGeneration(socket)).toBe(generation)
      }
      await idle()
      const before = await readNftGeneration(socket)
      await set(cluster, 'shop', 3, '10.244.1.2')
      expect(await readNftGeneration(socket)).toBe(before + 1)
      await idle()
      const web = () => nft('list', 'map', 'ip', 'kpng-userspace', 'portals').includes('10.96.0.1 . tcp')
      expect(web()).toBe(true)
      nft('delete', 'element', 'ip', 'kpng-userspace', 'portals', '{ 10.96.0.1 . tcp . 80 }')
      await until('it is written again', web, timeout)
      nft('flush', 'chain', 'ip6', 'kpng-userspace', 'nat-output')
      const rules = () => nft('list', 'chain', 'ip6', 'kpng-userspace', 'nat-output').includes('map @portals')
      await until('they are written again', rules, timeout)
      expect(warnings).toBeGreaterThan(0)
    })

    it('hears at once that the rules were taken away, and writes them with the full sync that it asks for', {
      timeout,
    }, async () => {
      const { cluster, reasons } = await start({ syncPeriodMs: 0, driftCheckIntervalMs: 3_600_000 })
      await set(cluster, 'web', 1, '10.244.1.2', 'fd44::2')
      nft('flush', 'ruleset')
      await until('it asks for a full sync', () => reasons.length > 0, timeout)
      await cluster.fullSync()
      expect(nft('list', 'ruleset')).toContain('10.96.0.1 . tcp . 80')
    })

    it('does not start beside another one with the same tables', async () => {
      await start({ syncPeriodMs: 0 })
      const second = userspaceBackend({ capture: nftCapture({ log: silentLog }) })
      await expect(second.setup({ requestFullSync: () => {} })).rejects.toThrow('"nft table kpng-userspace" is in use')
      await second.close()
      expect(nft('list', 'tables')).toContain('kpng-userspace')
    })
  },
)
