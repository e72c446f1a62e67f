import { KpngError, type Log, messageOf } from '@kpng/api'
import { isMissingProgram } from '@kpng/linux'
import type { Family } from '../address.js'
import type { Protocol } from '../portal.js'
import type { Capture } from './capture.js'
import { listRules, removeRules } from './iptables-removal.js'
import { jumps, restoreInput } from './iptables-rules.js'
import { type PortalOptions, portalPlaces } from './portals.js'
import { type RunProgram, runProgram } from './program.js'
import { staleFlowRemoval } from './stale-flows.js'

export interface IptablesOptions extends PortalOptions {
  readonly log: Log
  readonly run?: RunProgram
}

const programs: Record<Family, { rules: string; restore: string }> = {
  v4: { rules: 'iptables', restore: 'iptables-restore' },
  v6: { rules: 'ip6tables', restore: 'ip6tables-restore' },
}

/** Portals by iptables, in chains like those of kube-proxy's userspace mode. Other chains are never touched, but for the jumps to ours. */
export function iptablesCapture({ log, run = runProgram, ...portals }: IptablesOptions): Capture {
  const places = portalPlaces(portals)
  const removeStaleFlows = staleFlowRemoval({ log })
  let families: readonly Family[] = ['v4', 'v6']

  const succeeds = async (family: Family, args: readonly string[]): Promise<boolean> => {
    try {
      await run(programs[family].rules, ['-w', ...args])
      return true
    } catch (error) {
      if (error instanceof KpngError && error.code === 'unsupported') throw error
      return false
    }
  }
  const ensureJumps = async (family: Family) => {
    for (const { table, from, to, first, match } of jumps) {
      const rule = [...match, '-j', to]
      if (await succeeds(family, ['-t', table, '-C', from, ...rule])) continue
      await run(programs[family].rules, ['-w', '-t', table, first ? '-I' : '-A', from, ...rule])
    }
  }

  return {
    name: 'iptables',
    listensOnPortals: false,
    place: places.place,
    isRight: places.isRight,
    release: places.release,
    async setup() {
      await listRules(run, 'iptables', 'nat', 'PREROUTING')
      try {
        await listRules(run, 'ip6tables', 'nat', 'PREROUTING')
      } catch (error) {
        families = ['v4']
        log.warn('ip6tables cannot be used: services are proxied in IPv4 only', { error: messageOf(error) })
      }
    },
    async steer(steering) {
      for (const family of families) {
        const boundIp = (protocol: Protocol) => places.boundIp(family, protocol, steering.nodeIps)
        const layout = { family, boundIps: { tcp: boundIp('tcp'), udp: boundIp('udp') } }
        await run(programs[family].restore, ['-w', '--noflush'], restoreInput(layout, steering))
        if (steering.full) await ensureJumps(family)
      }
      await removeStaleFlows(steering)
    },
    async cleanup() {
      for (const family of families) {
        await removeRules(run, programs[family].rules).catch((error: unknown) => {
          if (family === 'v4' || !isMissingProgram(error)) throw error
          log.info('ip6tables is not installed: IPv6 was not looked at')
        })
      }
    },
  }
}
