import {
  type EndpointRow,
  type FrontendRow,
  KpngError,
  matchesLabels,
  type NodeRow,
  nearestNames,
  parseLabelSelector,
  type ServiceRow,
  type SyncAnswer,
} from '@kpng/api'
import type { Command } from 'commander'
import { ask, socketOf, withSocketFlags } from './ask.js'
import { type Flags, type MakeContext, textFlag } from './context.js'
import { healthCells } from './fleet.js'
import { addExamples, addExitCodes } from './help.js'
import { outputOption, printAnswer } from './output.js'

// `kpng get`: what a running kpng serves, in kubectl's way.

export const lists = ['services', 'endpoints', 'nodes', 'frontends', 'changes'] as const
type List = (typeof lists)[number]

/** Lists that have no namespaces. */
const clusterWide: readonly List[] = ['nodes', 'changes']

export function addGet(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program
      .command('get')
      .description('list what the kpng on this node serves')
      .argument('<what>', lists.join(', '))
      .argument('[names...]', 'only these'),
  )
    .option('--node <name>', 'ask the core on this machine what it serves this node')
    .option('-n, --namespace <name>', 'only this namespace (default: default)')
    .option('-A, --all-namespaces', 'all namespaces')
    .option('-l, --selector <labels>', 'only those with these labels: app=web,tier!=db (labels that kpng passes on)')
    .option('-w, --watch', 'go on, and print what changes')
    .option('--no-headers', 'print no line with the names of the columns')
    .addOption(outputOption('text', 'wide', 'name', 'json', 'yaml'))
  addExamples(command, 'kpng get svc web -o yaml', 'kpng get changes -w')
  addExitCodes(command, 'the list was printed', 'there is nothing of a name that was asked for')
  command.action(async (what: string, names: string[]) => {
    const flags = command.optsWithGlobals()
    const { signal, log } = await makeContext(flags)
    const [list, more] = askedFor(what)
    log.detail(1, 'Asking', { socket: await socketOf(flags) })
    await getList(list, [...more, ...names], flags, signal)
  })
}

/** As kubectl, which takes the singular and short names too, and `svc/web`. */
function askedFor(text: string): [List, string[]] {
  const [kind = '', ...names] = text.split('/')
  const short: Readonly<Record<string, string>> = { svc: 'services', ep: 'endpoints', no: 'nodes' }
  const found = lists.find((list) => list === kind || list.slice(0, -1) === kind || list === short[kind])
  if (found) return [found, names.length > 0 ? [names.join('/')] : []]
  const [near] = nearestNames(kind, lists)
  const hint = near === undefined ? '' : ` Did you mean ${near}?`
  throw new KpngError('usage', `kpng get knows ${lists.join(', ')}, not "${kind}".${hint}`)
}

type Row = ServiceRow | EndpointRow | NodeRow | FrontendRow | SyncAnswer
type WatchEvent = 'ADDED' | 'MODIFIED' | 'DELETED'

async function getList(list: List, names: readonly string[], flags: Flags, signal: AbortSignal): Promise<void> {
  const read = reader(list, names, flags)
  // What prints is loaded while the agent answers.
  const [rows, print] = await Promise.all([read(), printer(list, names, flags)])
  if (flags.watch) return await watch(list, rows, read, print, signal)
  const missing = names.filter((name) => !rows.some((row) => namesOf[list](row as never).includes(name)))
  if (rows.length > 0) await print(rows)
  else if (missing.length === 0) console.error(`No ${list} found${whereOf(list, flags)}.`)
  for (const name of missing) console.error(`There is no "${name}" among the ${list}${whereOf(list, flags)}.`)
  // For scripts: the question was answered, and something is not there.
  if (missing.length > 0) process.exitCode = 1
}

const namespaceOf = (list: List, flags: Flags): string | undefined =>
  flags.allNamespaces || clusterWide.includes(list) ? undefined : (textFlag(flags, 'namespace') ?? 'default')

function whereOf(list: List, flags: Flags): string {
  const namespace = namespaceOf(list, flags)
  return namespace === undefined ? '' : ` in the namespace ${namespace}`
}

/** Reads the rows that were asked for. */
function reader(list: List, names: readonly string[], flags: Flags): () => Promise<readonly Row[]> {
  const selector = textFlag(flags, 'selector')
  const labels = selector === undefined ? undefined : parseLabelSelector(selector)
  if (labels && !['services', 'nodes'].includes(list))
    throw new KpngError('usage', `-l chooses services and nodes by their labels; ${list} have none.`)
  if (names.length > 0 && list === 'changes')
    throw new KpngError('usage', 'Changes have no names. Leave the names out, or ask for a Service with kpng explain.')
  const query = new URLSearchParams()
  const namespace = namespaceOf(list, flags)
  if (namespace !== undefined) query.set('namespace', namespace)
  const node = textFlag(flags, 'node')
  if (node !== undefined) query.set('node', node)
  return async () => {
    const { [list]: rows } = await ask<Record<List, readonly Row[]>>(flags, `/v1/${list}?${query}`)
    const known = labels && (rows as readonly (ServiceRow | NodeRow)[])
    if (known && known.length > 0 && known.every((row) => row.labels === undefined)) {
      const flag = `--with-${list === 'nodes' ? 'node' : 'service'}-labels`
      throw new KpngError(
        'unavailable',
        `The kpng that was asked passes no labels of ${list} on. Start it with ${flag}.`,
      )
    }
    const chosen = known && labels ? known.filter((row) => matchesLabels(labels, row.labels)) : rows
    return names.length === 0
      ? chosen
      : chosen.filter((row) => namesOf[list](row as never).some((n) => names.includes(n)))
  }
}

/** The names of a list that a running kpng has, for completion. */
export async function knownNames(what: string, flags: Flags): Promise<readonly string[]> {
  const [list] = askedFor(what)
  const query = clusterWide.includes(list)
    ? ''
    : `?namespace=${encodeURIComponent(textFlag(flags, 'namespace') ?? 'default')}`
  const { [list]: rows } = await ask<Record<List, readonly Row[]>>(flags, `/v1/${list}${query}`, completionLimitMs)
  return [...new Set(rows.map((row) => namesOf[list](row as never)[0] ?? ''))]
}

const completionLimitMs = 1000

type Print = (rows: readonly Row[], event?: WatchEvent) => Promise<void>

/** What is printed later stands below what was printed first. */
async function printer(list: List, names: readonly string[], flags: Flags): Promise<Print> {
  const { columns } = await import('@kpng/diagnose')
  const widths: number[] = flags.watch ? ['MODIFIED'.length] : []
  let hasHead = flags.headers === false
  return async (rows, event) => {
    const [single] = names.length === 1 && rows.length === 1 && !event ? rows : []
    await printAnswer(flags, {
      // As kubectl: who asks for one object gets it, and not a list.
      value: single ?? { ...(event ? { event } : {}), [list]: rows },
      names: () => rows.map((row) => `${list.slice(0, -1)}/${namesOf[list](row as never)[0]}`),
      text: (isWide) => {
        const table = tables[list](rows as never, isWide, namespaceOf(list, flags) === undefined)
        const [head = [], ...cells] = flags.watch
          ? table.map((row, at) => [at === 0 ? 'EVENT' : `${event}`, ...row])
          : table
        const lines = columns(hasHead ? cells : [head, ...cells], widths)
        hasHead = true
        return `${lines.join('\n')}\n`
      },
    })
  }
}

const watchIntervalMs = 1000

async function watch(
  list: List,
  first: readonly Row[],
  read: () => Promise<readonly Row[]>,
  print: Print,
  signal: AbortSignal,
): Promise<void> {
  const { pause } = await import('@kpng/client')
  const byKey = (rows: readonly Row[]) => new Map(rows.map((row) => [keys[list](row as never)[0] ?? '', row]))
  let known = byKey([])
  for (let rows = first; !signal.aborted; rows = await read()) {
    const now = byKey(rows)
    const found: Record<WatchEvent, Row[]> = { ADDED: [], MODIFIED: [], DELETED: [] }
    for (const [key, row] of now) {
      const before = known.get(key)
      if (!before) found.ADDED.push(row)
      else if (JSON.stringify(before) !== JSON.stringify(row)) found.MODIFIED.push(row)
    }
    // Changes of long ago are forgotten, which is no news.
    if (list !== 'changes') for (const [key, row] of known) if (!now.has(key)) found.DELETED.push(row)
    for (const event of ['ADDED', 'MODIFIED', 'DELETED'] as const)
      if (found[event].length > 0) await print(found[event], event)
    known = now
    await pause(watchIntervalMs, signal)
    if (signal.aborted) return
  }
}

/** By what names a row may be asked for; the first one is its own. */
const namesOf: { readonly [K in List]: (row: never) => readonly string[] } = {
  services: ({ namespace, name }: ServiceRow) => [name, `${namespace}/${name}`],
  endpoints: ({ namespace, service }: EndpointRow) => [service, `${namespace}/${service}`],
  nodes: ({ name }: NodeRow) => [name],
  frontends: ({ id, service }: FrontendRow) => [id, service, service.split('/')[1] ?? service],
  changes: ({ number }: SyncAnswer) => [String(number)],
} as { readonly [K in List]: (row: never) => readonly string[] }

/** What makes a row the same row after a change. */
const keys = {
  ...namesOf,
  services: ({ namespace, name }: ServiceRow) => [`${namespace}/${name}`],
  endpoints: ({ namespace, service, ips }: EndpointRow) => [`${namespace}/${service} ${ips}`],
} as { readonly [K in List]: (row: never) => readonly string[] }

type Table = (rows: readonly never[], isWide: boolean, withNamespace: boolean) => string[][]

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
    ['NAME', 'STATE', 'REVISION', 'SINCE', 'LAST ERROR', 'ADDRESSES', 'ZONE', 'POD-CIDRS', 'LOCAL'],
    ...rows.map(({ name, addresses, zone, podCidrs, isLocal, ...health }) => [
      name,
      ...healthCells(health),
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
