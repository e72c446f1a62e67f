import { type Family, families, KpngError, type Log, messageOf } from '@kpng/api'
import { isMissingProgram } from '@kpng/linux'
import type { Capture, Steering } from './capture.js'
import { listRules, removeRules } from './iptables-removal.js'
import {
  areRules,
  chainsOf,
  type Jump,
  jumpsTo,
  ourLines,
  type Rules,
  restoreInput,
  rulesOf,
  tables,
} from './iptables-rules.js'
import { defaultTable, type PortalOptions, portalPlaces } from './portals.js'
import { type RunProgram, runProgram } from './program.js'
import { staleFlowRemoval } from './stale-flows.js'

export interface IptablesOptions extends PortalOptions {
  readonly log: Log
  readonly run?: RunProgram
}

const programs: Record<Family, string> = { IPv4: 'iptables', IPv6: 'ip6tables' }

/** Portals by iptables, in chains like those of kube-proxy's userspace mode. Other chains are never touched, but for the jumps to ours. */
export function iptablesCapture({ log, run = runProgram, ...portals }: IptablesOptions): Capture {
  const { boundIps, ...places } = portalPlaces(portals)
  const chains = chainsOf(portals.table ?? defaultTable)
  const removeStaleFlows = staleFlowRemoval({ log })
  let usable = families
  /** What of the node is in the rules. */
  let writtenNode = ''
  /** Our lines as iptables-save printed them after they were last repaired. */
  const repaired = new Map<Family, string>()

  const succeeds = async (family: Family, args: readonly string[]): Promise<boolean> => {
    try {
      await run(programs[family], ['-w', ...args])
      return true
    } catch (error) {
      if (error instanceof KpngError && error.code === 'unsupported') throw error
      return false
    }
  }
  const hasJump = (family: Family, { table, from, to, match }: Jump) =>
    succeeds(family, ['-t', table, '-C', from, ...match, '-j', to])
  /** Who flushes a table takes the jumps too, so one jump per table tells. */
  const missing = async (): Promise<string | undefined> => {
    const jumps = tables.flatMap((table) => jumpsTo(chains).find((jump) => jump.table === table) ?? [])
    for (const family of usable)
      for (const jump of jumps)
        if (!(await hasJump(family, jump))) return `the jump to ${jump.to} of ${programs[family]} is gone`
    return undefined
  }
  const ensureJumps = async (family: Family) => {
    for (const jump of jumpsTo(chains)) {
      if (await hasJump(family, jump)) continue
      const { table, from, to, first, match } = jump
      await run(programs[family], ['-w', '-t', table, first ? '-I' : '-A', from, ...match, '-j', to])
    }
  }
  const write = (family: Family, rules: Rules) =>
    run(`${programs[family]}-restore`, ['-w', '--noflush'], restoreInput(rules, chains))
  const list = async (family: Family): Promise<string[]> => {
    const saved: string[] = []
    for (const table of tables) saved.push(await run(`${programs[family]}-save`, ['-t', table]))
    return ourLines(saved.join('\n'), chains)
  }
  const repair = async (family: Family, rules: Rules) => {
    const lines = await list(family)
    if (areRules(lines, rules, chains) || lines.join('\n') === repaired.get(family)) return
    log.warn('Somebody else changed the rules of the portals; they are written again', { program: programs[family] })
    await write(family, rules)
    await ensureJumps(family)
    repaired.set(family, (await list(family)).join('\n'))
  }
  const steer = async ({ extent, open, added, removed, node }: Steering) => {
    const differs = extent === 'full' || added.length + removed.length > 0 || JSON.stringify(node) !== writtenNode
    for (const family of usable) {
      const rules = rulesOf(family, open, node, boundIps(family, node), chains)
      if (differs) {
        await write(family, rules)
        repaired.delete(family)
      }
      if (extent === 'full') await ensureJumps(family)
      if (extent === 'check') await repair(family, rules)
    }
    writtenNode = JSON.stringify(node)
    await removeStaleFlows({ added, removed })
  }

  return {
    ...places,
    name: 'iptables',
    lockName: `iptables chains ${portals.table ?? defaultTable}`,
    listensOnPortals: false,
    get families() {
      return usable
    },
    async setup() {
      await listRules(run, 'iptables', 'nat', 'PREROUTING')
      try {
        await listRules(run, 'ip6tables', 'nat', 'PREROUTING')
      } catch (error) {
        usable = ['IPv4']
        log.warn('ip6tables cannot be used: services are proxied in IPv4 only', { error: messageOf(error) })
      }
    },
    steer,
    missing,
    async cleanup() {
      for (const family of usable) {
        await removeRules(run, programs[family], portals.table === undefined ? undefined : chains).catch(
          (error: unknown) => {
            if (family === 'IPv4' || !isMissingProgram(error)) throw error
            log.info('ip6tables is not installed: IPv6 was not looked at')
          },
        )
      }
    },
  }
}
