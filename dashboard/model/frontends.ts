import type { AgentStatus, FrontendAnswer } from '@kpng/api'

// The addresses and ports of a Service: which family, which port, and how people write them.

export type Family = 'IPv4' | 'IPv6'

export interface Address {
  readonly family: Family
  /** `10.96.0.10:80`, `this node:30080` */
  readonly text: string
  /** What `kpng explain` takes: `10.96.0.10:80/tcp`, `30080/tcp`. */
  readonly question: string
  /** Undefined for a whole address. */
  readonly port: number | undefined
  /** Empty for a whole address. */
  readonly protocol: string
  readonly isNodePort: boolean
}

/** Reads an id such as `10.96.0.10:80/tcp`, `[fd00::1]:53/udp`, `IPv4 node port 30080/tcp` or, for a whole address, `10.96.0.10`. */
export function addressOf({ id }: Pick<FrontendAnswer, 'id'>): Address {
  const nodePort = /^(IPv[46]) node port (\d+)\/(\w+)$/.exec(id)
  if (nodePort) {
    const [, family, port = '', protocol = ''] = nodePort
    return {
      ...{ family: family as Family, text: `this node:${port}`, question: `${port}/${protocol}` },
      ...{ port: Number(port), protocol, isNodePort: true },
    }
  }
  const [, host = id, port, protocol = ''] = /^(.*):(\d+)\/(\w+)$/.exec(id) ?? []
  return {
    family: host.includes(':') ? 'IPv6' : 'IPv4',
    text: port === undefined ? host : `${host}:${port}`,
    question: id,
    port: port === undefined ? undefined : Number(port),
    protocol,
    isNodePort: false,
  }
}

/** A port of the Service, with a name for the switch. */
export interface PortChoice {
  readonly name: string
  /** `http 80`, `53/udp` */
  readonly label: string
}

export const familiesOf = (frontends: readonly FrontendAnswer[]): Family[] =>
  [...new Set(frontends.map((frontend) => addressOf(frontend).family))].sort()

/** By the name of the port. A Service with several ports has a name for each. */
export function portsOf(frontends: readonly FrontendAnswer[]): PortChoice[] {
  const byName = new Map<string, Address>()
  for (const frontend of frontends) {
    const address = addressOf(frontend)
    const known = byName.get(frontend.portName)
    if (!known || (known.isNodePort && !address.isNodePort)) byName.set(frontend.portName, address)
  }
  return [...byName].map(([name, { port, protocol }]) => {
    const number = port === undefined ? 'every port' : `${port}${protocol === 'tcp' ? '' : `/${protocol}`}`
    return { name, label: name === '' ? number : `${name} ${number}` }
  })
}

/** The frontends of one family and port: cluster IPs first, node ports after them, then the others. */
export function frontendsFor(frontends: readonly FrontendAnswer[], family: Family, portName: string): FrontendAnswer[] {
  const rank = ({ kind }: FrontendAnswer) => (kind.startsWith('cluster') ? 0 : kind.startsWith('node') ? 1 : 2)
  return frontends
    .filter((frontend) => frontend.portName === portName && addressOf(frontend).family === family)
    .sort((a, b) => rank(a) - rank(b))
}

/**
 * What to type to get the same answer in a terminal.
 * @param hints of a playground: one of them says how kpng is called there, and where its socket is
 */
export function explainCommand(
  frontend: FrontendAnswer,
  from: string,
  node: string,
  hints: AgentStatus['hints'] = [],
): string {
  const { question } = addressOf(frontend)
  const quoted = question.includes('[') ? `'${question}'` : question
  const [, kpng = 'kpng', rest = ''] =
    hints.map(({ command }) => /^(.*\bkpng) explain \S+(.*)$/.exec(command)).find((found) => found !== null) ?? []
  return `${kpng} explain ${quoted}${rest} --from ${from}${node === '' ? '' : ` --node ${node}`}`
}
