import { families } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { type IpvsOptions, schedulerAnnotation, settingsOf } from './options.js'
import { placeOf, tableText } from './rules.js'
import { IpvsState, openAddresses } from './state.js'

/**
 * Virtual servers in the words of ipvsadm, addresses, and the rules for nft: for people (`--dry-run`) and for tests. Node ports are shown
 * at the addresses of the Node object.
 */
export function renderState(view: NodeView, options: IpvsOptions = {}): string {
  const settings = settingsOf(options)
  const { dataplane, names, masqueradeBit } = settings
  const served = settings.ipv6 === false ? (['IPv4'] as const) : families
  const services = new Map([...view.services].sort(([a], [b]) => (a < b ? -1 : 1)))
  const table = FrontendTable.of({ ...view, services }, options, { families: served, addresses: [] })
  const state = new IpvsState(table)
  state.rebuild({
    ownAddresses: new Set(table.node.addresses),
    nodePortAddresses: openAddresses(table.node, table.node.addresses),
    schedulerOf: (service) => services.get(service)?.service.annotations[schedulerAnnotation] ?? settings.scheduler,
    serves: () => true,
  })
  const lines: string[] = []
  for (const { key, scheduler, persistenceSeconds, destinations } of state.servers.values()) {
    lines.push(
      `virtual server ${key} ${scheduler}${persistenceSeconds > 0 ? ` persistent ${persistenceSeconds} s` : ''}`,
    )
    for (const destination of destinations.keys()) lines.push(`  -> ${destination}`)
  }
  for (const address of state.addresses) lines.push(`address ${address} on ${names.interfaceName}`)
  const tables = served.map((family) =>
    tableText(placeOf(family, table.node, dataplane.detectLocal), state.elements(family), {
      tableName: names.tableName,
      masqueradeBit,
    }),
  )
  return `${lines.join('\n')}\n${tables.join('')}`
}
