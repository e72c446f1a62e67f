import {
  type Diagnosis,
  type EndpointAnswer,
  type Explanation,
  endpointReasons,
  type Finding,
  type FrontendAnswer,
  hostPort,
  type ProbeAnswer,
  printable,
} from '@kpng/api'
import { holderText } from './held.js'

/** An explanation for people: the answer first, then each address of the Service, then what to do, then each endpoint. */
export function explanationText(explanation: Explanation): string {
  const { question, node, asked, diagnosis, frontends, service, probes } = explanation
  const parts = [
    [`${question} on node ${node}`, diagnosis.headline, ...(asked === undefined ? [] : [`(asked: ${asked})`])],
    ...frontends.map(frontendLines),
    ...(probes ? [probeLines(probes, explanation.probesLeftOut)] : []),
    ...findingSections(diagnosis),
    ...(diagnosis.unknown.length > 0 ? [['Not known', ...diagnosis.unknown.map(indented)]] : []),
    ...(service && service.endpoints.length > 0 ? [endpointLines(service.endpoints, diagnosis.used)] : []),
  ]
  return parts.map((lines) => `${lines.join('\n')}\n`).join('\n')
}

const indented = (text: string): string => `  ${text}`

const sections: readonly (readonly [title: string, letters: string])[] = [
  ['What to do', 'SD'],
  ['In Kubernetes', 'K'],
  ['On this node', 'N'],
]

const marks = { problem: '✗', warning: '!', note: '·' } as const

function findingSections({ findings, headline }: Diagnosis): string[][] {
  return sections.flatMap(([title, letters]) => {
    const own = findings.filter(({ code }) => letters.includes(code.charAt('KPNG-'.length)))
    return own.length === 0 ? [] : [[title, ...own.flatMap((each) => findingLines(each, headline))]]
  })
}

/** What the headline says already is not said again. */
function findingLines({ code, level, what, todo, command, examples = [] }: Finding, headline: string): string[] {
  const said = what
    .slice(what.indexOf(': ') + 1)
    .trim()
    .replace(/\.$/, '')
  return [
    ...(headline.includes(said) ? [`  ${marks[level]} ${code}  ${todo}`] : [`  ${marks[level]} ${code}  ${what}`]),
    ...examples.map((example) => `    - ${example}`),
    ...(headline.includes(said) ? [] : [`    ${todo}`]),
    ...(command === undefined ? [] : [`    ${command}`]),
  ]
}

const probeLines = (probes: readonly ProbeAnswer[], leftOut = 0): string[] => [
  'TCP connections from this machine',
  ...probes.map(({ result, sentence }) => `  ${result === 'connected' ? '✓' : '✗'} ${sentence}`),
  ...(probes.length === 0 ? ['  There is no endpoint to connect to over TCP.'] : []),
  ...(leftOut > 0 ? [`  ${leftOut} more were not tried.`] : []),
]

function frontendLines({ id, kind, portName, routes, notes, held, flows }: FrontendAnswer): string[] {
  return [
    `${id}  ${kind}${portName === '' ? '' : `, port ${portName}`}`,
    ...routes.flatMap(({ outcome, sentence, endpoints }) => [
      `  ${outcome === 'endpoint' ? '✓' : '✗'} ${sentence}`,
      ...(endpoints.length > 0 ? [`    ${shortList(endpoints)}`] : []),
    ]),
    ...notes.map(indented),
    ...(flows && flows.length > 0
      ? [`  Flows now: ${shortList(flows.map(({ endpoint, count }) => `${count} to ${endpoint}`))}`]
      : []),
    ...(held?.isRight ? [`  ${holderText(held.holder)} holds exactly this.`] : []),
    ...(held?.differences ?? []).map((difference) => `  ✗ ${difference}`),
    ...(held?.connections === undefined ? [] : [`  Connections so far: ${held.connections}`]),
    ...(held?.sessionAffinity ?? []).map(({ client, endpoint }) => `  ${client} is remembered at ${endpoint}`),
  ]
}

/** Enough to recognize them; all of them are in the list of endpoints. */
function shortList(texts: readonly string[], most = 6): string {
  const rest = texts.length - most
  return rest > 0 ? `${texts.slice(0, most).join(', ')} and ${rest} more` : texts.join(', ')
}

function endpointLines(endpoints: readonly EndpointAnswer[], used: number): string[] {
  const rows = endpoints.map((endpoint) => [
    addressOf(endpoint),
    endpoint.pod || '-',
    endpoint.node === '' ? '-' : `${endpoint.node}${endpoint.isLocal ? ' (this node)' : ''}`,
    endpoint.zone || '-',
    stateOf(endpoint),
    useOf(endpoint),
  ])
  return [
    `Endpoints: this node uses ${used} of ${endpoints.length}`,
    ...columns([['ADDRESS', 'POD', 'NODE', 'ZONE', 'STATE', 'USED'], ...rows]).map((line) => `  ${line}`),
  ]
}

const addressOf = ({ ips, ports }: EndpointAnswer): string =>
  ips.map((ip) => (ports.length === 1 ? hostPort(ip, ports[0] as number) : ip)).join(' ')

function stateOf({ ready, serving, terminating }: EndpointAnswer): string {
  if (terminating) return serving ? 'terminating, serving' : 'terminating'
  return ready ? 'ready' : 'not ready'
}

function useOf({ reason, scopes }: EndpointAnswer): string {
  // A newer agent may have reasons that this version does not know.
  if (reason) return `no: ${endpointReasons[reason] ?? reason}`
  if (scopes.includes('internal') && scopes.includes('external')) return 'yes'
  if (scopes.includes('external')) return 'yes, for traffic from outside only'
  return scopes.includes('internal') ? 'yes, not for traffic from outside' : 'yes, for pods and this node only'
}

/**
 * Lines whose fields stand below each other. Whatever others wrote into a field is shown, not obeyed.
 * @param widths at least so wide; it is raised to what these rows need, for rows that come later
 */
export function columns(cells: readonly (readonly string[])[], widths: number[] = []): string[] {
  const rows = cells.map((row) => row.map(printable))
  for (const row of rows) {
    for (const [column, text] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, text.length)
  }
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
