import { planRemoval, unreadableTables } from './iptables-plan.js'
import { type FindLeftovers, look, type Removal, type Surroundings } from './removal.js'

/** How long to wait for the lock of legacy iptables. The nft variant accepts the flag and ignores it. */
const lockWaitSeconds = 10

/** Of modes iptables and ipvs: chains and the jumps to them, in every variant of iptables that is installed. */
export const findIptables: FindLeftovers = async (surroundings) => {
  const removals: Removal[] = []
  for (const family of ['iptables', 'ip6tables']) {
    for (const [program, saved] of await savedBy(family, surroundings)) {
      removals.push(...removalsOf(program, saved, surroundings))
    }
  }
  return removals
}

/**
 * What each variant has, by its program's name. kube-proxy's image chooses a variant by itself, which may not be the node's default, so
 * both are checked. `iptables` itself is one of the two, and is used only if neither variant is installed.
 */
async function savedBy(family: string, surroundings: Surroundings): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const variant of [`${family}-nft`, `${family}-legacy`, family]) {
    if (variant === family && found.size > 0) break
    const saved = await look(surroundings, `${variant}-save`, [])
    if (saved !== undefined) found.set(variant, saved)
  }
  return found
}

function removalsOf(program: string, saved: string, { log, failed }: Surroundings): Removal[] {
  for (const table of unreadableTables(saved)) {
    failed(
      `${program} cannot read the table ${table}, which contains native nft rules; check it with \`nft list ruleset\``,
    )
  }
  return planRemoval(saved).flatMap(({ table, chains, jumps, kept, restore }) => {
    if (kept.length > 0)
      log.warn('Kept chains of kube-proxy that other rules jump to', { program, table, chains: kept.join(',') })
    if (restore === '') return []
    return {
      what: 'chains',
      fields: { program, table, chains: chains.length, jumps: jumps.length },
      program: `${program}-restore`,
      args: ['--noflush', '-w', String(lockWaitSeconds)],
      input: restore,
    }
  })
}
