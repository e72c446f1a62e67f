import type { EndpointRow, FrontendRow, NodeRow, ServiceRow, SyncAnswer } from '@kpng/api'
import { type Flags, textFlag } from './context.js'
import { print } from './print.js'

type List = 'services' | 'endpoints' | 'nodes' | 'frontends' | 'changes'

/** Lists that have no namespaces. */
const clusterWide: readonly List[] = ['nodes', 'changes']

/** Prints a list of a running kpng in kubectl's way, once or again and again. */
export async function printList(list: List, flags: Flags, socketPath: string, signal: AbortSignal): Promise<void> {
  const { askAgent } = await import('@kpng/node/agent-api')
  const namespace =
    flags.allNamespaces || clusterWide.includes(list) ? undefined : (textFlag(flags, 'namespace') ?? 'default')
  const query = namespace === undefined ? '' : `?namespace=${encodeURIComponent(namespace)}`
  const read = async () => (await askAgent<Record<List, readonly never[]>>(socketPath, `/v1/${list}${query}`))[list]
  // What prints is loaded while the agent answers.
  const [first, textOf] = await Promise.all([read(), printer(list, flags, namespace === undefined)])
  let rows = first
  print(textOf(rows))
  if (!flags.watch) return
  const { pause } = await import('@kpng/client')
  while (!signal.aborted) {
    await pause(watchIntervalMs, signal)
    const known = new Set(rows.map((row) => JSON.stringify(row)))
    rows = await read()
    const fresh = rows.filter((row) => !known.has(JSON.stringify(row)))
    if (fresh.length > 0) print(textOf(fresh))
  }
}

const watchIntervalMs = 1000

/** Makes text of rows. What is printed later stands below what was printed first. */
async function printer(list: List, flags: Flags, withNamespace: boolean): Promise<(rows: readonly never[]) => string> {
  if (flags.output === 'json') return (rows) => `${JSON.stringify({ [list]: rows }, undefined, 2)}\n`
  if (flags.output === 'yaml') {
    const { dump } = await import('js-yaml')
    return (rows) => dump({ [list]: rows })
  }
  const { columns } = await import('@kpng/diagnose')
  const widths: number[] = []
  let hasHead = false
  return (rows) => {
    if (rows.length === 0) return `No ${list} found${withNamespace ? '' : ' in the namespace'}.\n`
    const [head = [], ...cells] = tables[list](rows, flags.output === 'wide', withNamespace)
    const lines = columns(hasHead ? cells : [head, ...cells], widths)
    hasHead = true
    return `${lines.join('\n')}\n`
  }
}

type Table = (rows: readonly never[], wide: boolean, withNamespace: boolean) => string[][]

const tables: Readonly<Record<List, Table>> = {
  services: (rows: readonly ServiceRow[], wide, withNamespace) => [
    [
      ...(withNamespace ? ['NAMESPACE'] : []),
      'NAME',
      'TYPE',
      'CLUSTER-IP',
      'EXTERNAL-IP',
      'PORT(S)',
      'ENDPOINTS',
      ...(wide ? ['POLICY', 'AFFINITY'] : []),
      'STATE',
    ],
    ...rows.map((row) => [
      ...(withNamespace ? [row.namespace] : []),
      row.name,
      row.type,
      row.clusterIps.join(',') || 'None',
      row.externalIps.join(',') || '<none>',
      row.ports.join(','),
      String(row.endpoints),
      ...(wide
        ? [`${row.internalTrafficPolicy}/${row.externalTrafficPolicy}`, row.sessionAffinity ? 'ClientIP' : 'None']
        : []),
      row.verdict === 'serving' ? row.reason : `${row.verdict}${row.reason === '' ? '' : `: ${row.reason}`}`,
    ]),
  ],
  endpoints: (rows: readonly EndpointRow[], _, withNamespace) => [
    [...(withNamespace ? ['NAMESPACE'] : []), 'SERVICE', 'ADDRESS', 'HOSTNAME', 'LOCAL'],
    ...rows.map(({ namespace, service, ips, hostname, isLocal }) => [
      ...(withNamespace ? [namespace] : []),
      service,
      ips.join(','),
      hostname || '-',
      isLocal ? 'yes' : 'no',
    ]),
  ],
  nodes: (rows: readonly NodeRow[]) => [
    ['NAME', 'ADDRESSES', 'ZONE', 'POD-CIDRS', 'LOCAL'],
    ...rows.map(({ name, addresses, zone, podCidrs, isLocal }) => [
      name,
      addresses.join(',') || '-',
      zone || '-',
      podCidrs.join(',') || '-',
      isLocal ? 'yes' : 'no',
    ]),
  ],
  frontends: (rows: readonly FrontendRow[], wide) => [
    ['ADDRESS', 'KIND', 'SERVICE', 'PORT', 'ENDPOINTS', 'FROM OUTSIDE'],
    ...rows.map(({ id, kind, service, portName, inside, outside }) => [
      ...[id, kind, service, portName || '-'],
      wide ? inside.join(',') : String(inside.length),
      wide ? outside.join(',') : String(outside.length),
    ]),
  ],
  changes: (rows: readonly SyncAnswer[]) => [
    ['NUMBER', 'TIME', 'TOOK', 'SINCE CHANGE', 'SERVICES'],
    ...rows.map(({ number, at, durationMs, latencyMs, full, services, moreServices, error }) => [
      String(number),
      at,
      `${durationMs.toFixed(1)}ms`,
      latencyMs === undefined ? '-' : `${Math.round(latencyMs)}ms`,
      error ??
        [
          ...(full ? ['everything'] : []),
          ...services.map(({ service, before = 0, after }) => `${service} ${before}→${after ?? 'gone'}`),
          ...(moreServices > 0 ? [`and ${moreServices} more`] : []),
        ].join(', '),
    ]),
  ],
} as Readonly<Record<List, Table>>
