import { KpngError, type Log, messageOf } from '@kpng/api'
import type { Family } from '../address.js'
import type { Capture } from './capture.js'
import { forgetUdpFlows } from './conntrack.js'
import { chains, jumps, restoreInput } from './iptables-rules.js'
import { type PortalOptions, portalPlaces } from './portals.js'
import { type RunProgram, runProgram } from './program.js'

export interface IptablesOptions extends PortalOptions {
  readonly log: Log
  readonly run?: RunProgram
}

const programs: Record<Family, { rules: string; restore: string }> = {
  v4: { rules: 'iptables', restore: 'iptables-restore' },
  v6: { rules: 'ip6tables', restore: 'ip6tables-restore' },
}

/** Portals by iptables, in the chains of kube-proxy's userspace mode. Other chains are never touched, but for the jumps to ours. */
export function iptablesCapture({ log, run = runProgram, ...portals }: IptablesOptions): Capture {
  const places = portalPlaces(portals)
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
  const cleanUp = async (family: Family) => {
    for (const { table, from, to, match } of jumps) {
      while (await succeeds(family, ['-t', table, '-D', from, ...match, '-j', to]));
    }
    for (const name of Object.values(chains)) {
      const table = name === chains.filter ? 'filter' : 'nat'
      await succeeds(family, ['-t', table, '-F', name])
      await succeeds(family, ['-t', table, '-X', name])
    }
  }

  return {
    name: 'iptables',
    listensOnPortals: false,
    place: places.place,
    release: places.release,
    async setup() {
      await run('iptables', ['-w', '-t', 'nat', '-S', 'PREROUTING']).catch((error: unknown) => {
        if (error instanceof KpngError && error.code === 'unsupported') throw error
        throw new KpngError(
          'unsupported',
          `iptables cannot read the nat table; run as root or with CAP_NET_ADMIN: ${messageOf(error)}`,
          { cause: error },
        )
      })
      try {
        await run('ip6tables', ['-w', '-t', 'nat', '-S', 'PREROUTING'])
      } catch (error) {
        families = ['v4']
        log.warn('ip6tables cannot be used: services are proxied in IPv4 only', { error: messageOf(error) })
      }
    },
    async steer(steering) {
      for (const family of families) {
        const layout = { family, bindIp: places.boundIp(family) }
        await run(programs[family].restore, ['-w', '--noflush'], restoreInput(layout, steering))
        if (steering.full) await ensureJumps(family)
      }
      await forgetUdpFlows(steering, run, log)
    },
    async cleanup() {
      await cleanUp('v4')
      await cleanUp('v6').catch((error: unknown) => log.detail(2, 'No ip6tables rules', { error: messageOf(error) }))
    },
  }
}
