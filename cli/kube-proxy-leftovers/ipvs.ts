import { existsSync } from 'node:fs'
import { ipvsInterface, kubeProxySets } from './names.js'
import { type FindLeftovers, look, type Removal, type Surroundings } from './removal.js'

/**
 * Of mode ipvs: virtual servers, the interface with the Services' addresses, sets. The chains are found with those of
 * mode iptables, and must have gone before the sets they use.
 */
export const findIpvs: FindLeftovers = async (surroundings) => {
  const links = await look(surroundings, 'ip', ['-o', 'link', 'show'])
  const present = new RegExp(`^\\d+: ${ipvsInterface}[@:]`, 'm').test(links ?? '')
  const sets = (await look(surroundings, 'ipset', ['list', '-n'])) ?? ''
  const removals = present ? await virtualServers(surroundings) : []
  if (present) {
    const args = ['link', 'delete', ipvsInterface]
    removals.push({ what: 'interface', fields: { interface: ipvsInterface }, program: 'ip', args })
  } else if (links !== undefined) {
    surroundings.log.info(`Skipped virtual servers: without ${ipvsInterface} they are not kube-proxy's`)
  }
  for (const set of sets.split('\n').filter((name) => kubeProxySets.has(name))) {
    removals.push({ what: 'set', fields: { set }, program: 'ipset', args: ['destroy', set] })
  }
  return removals
}

/**
 * All of them, as `kube-proxy --cleanup` does: they carry no names. Only asked for where kube-proxy's interface is;
 * elsewhere they are somebody else's, keepalived's perhaps.
 */
async function virtualServers(surroundings: Surroundings): Promise<Removal[]> {
  // Looked up first: ipvsadm would load the module.
  if (!existsSync('/proc/net/ip_vs')) {
    surroundings.log.info('Skipped virtual servers: the kernel has no IPVS')
    return []
  }
  const listed = (await look(surroundings, 'ipvsadm', ['-S', '-n'])) ?? ''
  const count = listed.split('\n').filter((line) => line.startsWith('-A ')).length
  if (count === 0) return []
  return [{ what: 'virtual servers', fields: { count }, program: 'ipvsadm', args: ['-C'] }]
}
