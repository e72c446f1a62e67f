import type { globalv1, LiveNode, NodeHealth, NodeRow } from '@kpng/api'
import { nodeRow } from './rows.js'

/** Every node that a core knows or serves, and how its kpng follows the core. */
export function fleetRows(known: Iterable<globalv1.Node>, live: Iterable<LiveNode>, localName: string): NodeRow[] {
  const nodes = new Map([...known].map((node) => [node.name, node]))
  const healths = new Map([...live].map((node) => [node.name, node]))
  return [...new Set([...nodes.keys(), ...healths.keys()])].sort().map((name) => {
    const node = nodes.get(name)
    const isLocal = name === localName
    const row = node ? nodeRow(node, localName) : { name, addresses: [], zone: '', podCidrs: [], isLocal }
    const health = healths.get(name)
    return { ...row, ...(health ? healthOf(health) : { state: 'never synced' as const }) }
  })
}

function healthOf({ watchers, revision, behindSince, leftAt }: LiveNode): NodeHealth & Pick<NodeRow, 'revision'> {
  if (behindSince !== undefined) return { state: 'behind', since: behindSince, revision }
  if (watchers > 0) return { state: 'up to date', revision }
  return leftAt === undefined ? { state: 'never synced' } : { state: 'disconnected', since: leftAt }
}
