import { isPort, nameProblem, type Report, shown } from '../../kubernetes/fields.js'
import { conditionsOf, type EndpointPort, type EndpointRecord, type Hints, none } from '../../store/index.js'
import { ipsOf } from './state-ips.js'
import type { StateEndpoint } from './state-shape.js'

/** The endpoints of one service of a state file, by the name of their source. */
export function endpointsFromState(
  given: readonly (StateEndpoint | null)[],
  service: string,
  report: Report,
): Map<string, EndpointRecord[]> {
  const sources = new Map<string, EndpointRecord[]>()
  const seen = new Set<string>()
  const share = new Sharing()
  for (const [index, item] of given.entries()) {
    const where = `endpoints[${index}]`
    const source = item?.sourcename || service
    const problem = nameProblem(source)
    const record = item && endpointIn(item, where, share, report)
    if (!record) continue
    if (problem !== undefined) {
      report(`${where}.sourcename is ${shown(source)}, which is no name: ${problem}. The endpoint is left out.`)
      continue
    }
    const key = `${source} ${record.v4.join()} ${record.v6.join()}`
    if (seen.has(key)) {
      report(`${where} has the addresses of an earlier endpoint. It is left out.`)
      continue
    }
    seen.add(key)
    const records = sources.get(source)
    if (records) records.push(record)
    else sources.set(source, [record])
  }
  return sources
}

/** All addresses of an endpoint, of both families, stay one record: it is one endpoint to those who wrote the file. */
function endpointIn(given: StateEndpoint, where: string, share: Sharing, report: Report): EndpointRecord | undefined {
  const { v4, v6 } = ipsOf(given.endpoint?.ips, `${where}.endpoint.ips`, report)
  if (v4.length + v6.length === 0) {
    report(`${where} has no usable IP address. The endpoint is left out.`)
    return undefined
  }
  const { conditions, topology } = given
  return {
    podName: podNameIn(given, where, report),
    hostname: given.endpoint?.hostname ?? '',
    v4: v4.length === 0 ? none : v4,
    v6: v6.length === 0 ? none : v6,
    ports: share.ports(portsIn(given, where, report)),
    node: given.nodename || topology?.node || topology?.['kubernetes.io/hostname'] || '',
    zone: topology?.zone || topology?.['topology.kubernetes.io/zone'] || '',
    hints: given.hints ? share.hints(namesIn(given.hints.zones), namesIn(given.hints.nodes)) : undefined,
    conditions: conditionsIn(conditions),
  }
}

/**
 * Go's files know `ready` alone, and an endpoint that is not ready is mostly not serving either; so here a missing `serving` is what
 * `ready` is, and kpng writes it only where it differs: Go's reader refuses fields that it does not know.
 */
function conditionsIn(given: StateEndpoint['conditions']): EndpointRecord['conditions'] {
  const ready = given?.ready ?? true
  return conditionsOf({ ready, serving: given?.serving ?? ready, terminating: given?.terminating ?? false })
}

function podNameIn(given: StateEndpoint, where: string, report: Report): string {
  const name = given.podname ?? ''
  const problem = name === '' ? undefined : nameProblem(name)
  if (problem === undefined) return name
  report(`${where}.podname is ${shown(name)}, which is no name: ${problem}. It is ignored.`)
  return ''
}

/** Go writes an empty list where it has none; then the target ports of the service count, unless `noports` says otherwise. */
function portsIn(given: StateEndpoint, where: string, report: Report): EndpointRecord['ports'] {
  const overrides = given.endpoint?.portoverrides
  if (!overrides || overrides.length === 0) return given.noports ? none : undefined
  const ports = new Map<string, EndpointPort>()
  for (const [index, item] of overrides.entries()) {
    const name = item?.name ?? ''
    const field = `${where}.endpoint.portoverrides[${index}]`
    if (!isPort(item?.port)) report(`${field}.port is ${shown(item?.port)}; a port is 1 to 65535. It is left out.`)
    else if (ports.has(name)) report(`${field} has the name ${shown(name)} of an earlier port. It is left out.`)
    else ports.set(name, { name, port: item.port })
  }
  return [...ports.values()]
}

const namesIn = (given: readonly (string | null)[] | null | undefined): readonly string[] =>
  given && given.length > 0 ? given.filter((name) => name !== null) : none

/** The endpoints of a service mostly have the same ports and hints; equal ones become one object. */
class Sharing {
  readonly #ports = new Map<string, readonly EndpointPort[]>()
  readonly #hints = new Map<string, Hints>()

  ports(ports: EndpointRecord['ports']): EndpointRecord['ports'] {
    if (ports === undefined || ports.length === 0) return ports
    return shared(this.#ports, JSON.stringify(ports), () => ports)
  }

  hints(zones: readonly string[], nodes: readonly string[]): Hints {
    return shared(this.#hints, JSON.stringify([zones, nodes]), () => ({ zones, nodes }))
  }
}

function shared<T>(known: Map<string, T>, key: string, make: () => T): T {
  let value = known.get(key)
  if (value === undefined) {
    value = make()
    known.set(key, value)
  }
  return value
}
