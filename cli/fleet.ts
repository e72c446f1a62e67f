import type { NodeHealth, NodeRow } from '@kpng/api'
import type { Printed } from './output.js'

// The nodes of a cluster and how their kpng are, as `kpng status --all`, `kpng get nodes` and `kubectl kpng` show them.

/** STATE, REVISION, SINCE and LAST ERROR. */
export const healthCells = ({ state, revision, since, lastError }: Partial<NodeHealth> & Pick<NodeRow, 'revision'>) => [
  state ?? '-',
  revision === undefined ? '-' : String(revision),
  since ?? '-',
  lastError ?? '-',
]

/** A node about which nothing is known but how its kpng is. */
export const bareNode = (name: string, health: NodeHealth): NodeRow => ({
  ...{ name, addresses: [], zone: '', podCidrs: [], isLocal: false },
  ...health,
})

export const isWell = ({ state }: NodeRow): boolean => state === 'up to date'

export async function fleetPrinted(nodes: readonly NodeRow[]): Promise<Printed> {
  const { columns } = await import('@kpng/diagnose')
  const well = nodes.filter(isWell).length
  const rows = nodes.map((node) => [node.name, ...healthCells(node)])
  return {
    value: { nodes },
    names: () => nodes.map(({ name }) => `node/${name}`),
    text: () =>
      [
        ...columns([['NODE', 'STATE', 'REVISION', 'SINCE', 'LAST ERROR'], ...rows]),
        '',
        `${well} of ${nodes.length} nodes are up to date.`,
        '',
      ].join('\n'),
  }
}
