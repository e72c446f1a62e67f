import { existsSync } from 'node:fs'
import { KpngError } from '@kpng/api'
import { ipvsInterface, kubeProxySets } from './names.js'
import { type FindLeftovers, look, type Removal, type Surroundings } from './removal.js'

/**
 * Of mode ipvs: virtual servers, the interface with the Services' addresses, sets. `findIptables` finds the chains; they must be
 * deleted before the sets that they use.
 */
export const findIpvs: FindLeftovers = async (surroundings) => {
  const links = await look(surroundings, 'ip', ['-o', 'link', 'show'])
  const present = new RegExp(`^\\d+: ${ipvsInterface}[@:]`, 'm').test(links ?? '')
  const sets = (await look(surroundings, 'ipset', ['list', '-n'])) ?? ''
  const whyKept = present ? await whyInUse(surroundings) : undefined
  const removals = present && whyKept === undefined ? await virtualServers(surroundings) : []
  if (whyKept !== undefined) {
    surroundings.log.info(`Skipped virtual servers and ${ipvsInterface}: ${whyKept}`)
  } else if (present) {
    const args = ['link', 'delete', ipvsInterface]
    removals.push({ what: 'interface', fields: { interface: ipvsInterface }, program: 'ip', args })
  } else if (links !== undefined) {
    surroundings.log.info(`Skipped virtual servers: there is no ${ipvsInterface}, so they do not belong to kube-proxy`)
  }
  for (const set of sets.split('\n').filter((name) => kubeProxySets.has(name))) {
    removals.push({ what: 'set', fields: { set }, program: 'ipset', args: ['destroy', set] })
  }
  return removals
}

/** kpng's ipvs backend has the same interface, and a table of its own. If that cannot be looked for, the interface stays. */
async function whyInUse({ run, sight }: Surroundings): Promise<string | undefined> {
  const unknown = 'kpng may use them, and `nft list tables` cannot say whether it does'
  try {
    const tables = await run('nft', ['list', 'tables'])
    if (tables !== undefined) return /^table ip6? kpng-ipvs$/m.test(tables) ? 'kpng uses them' : undefined
    sight.missing.push('nft')
    return unknown
  } catch (error) {
    // Without nftables in the kernel there is no kpng.
    return error instanceof KpngError && error.code === 'unsupported' ? undefined : unknown
  }
}

/**
 * All of them, as `kube-proxy --cleanup` does, since they have no names. Called only if kube-proxy's interface exists; without it they
 * belong to something else, such as keepalived.
 */
async function virtualServers(surroundings: Surroundings): Promise<Removal[]> {
  // Checked first, because ipvsadm would load the module.
  if (!existsSync('/proc/net/ip_vs')) {
    surroundings.log.info('Skipped virtual servers: the kernel has no IPVS')
    return []
  }
  const listed = (await look(surroundings, 'ipvsadm', ['-S', '-n'])) ?? ''
  const count = listed.split('\n').filter((line) => line.startsWith('-A ')).length
  if (count === 0) return []
  return [{ what: 'virtual servers', fields: { count }, program: 'ipvsadm', args: ['-C'] }]
}
