import { isPort, nameProblem } from '@kpng/api'
import { type Report, shown } from '../../kubernetes/fields.js'
import { conditionsOf, type EndpointPort, type EndpointRecord, type Hints, none } from '../../store/index.js'
import { addressesIn, type StateEndpoint } from './state-format.js'

/** The endpoints of one service of a state file, by the name of their slice (`sourcename`). */
export function endpointsFromState(
  given: readonly (StateEndpoint | null)[],
  service: string,
  report: Report,
): Map<string, EndpointRecord[]> {
  const slices = new Map<string, EndpointRecord[]>()
  const seen = new Set<string>()
  const share = new Sharing()
  for (const [index, item] of given.entries()) {
    const where = `endpoints[${index}]`
    const slice = item?.sourcename || service
    const problem = nameProblem(slice)
    const record = item && endpointIn(item, where, share, report)
    if (!record) continue
    if (problem !== undefined) {
      report(`${where}.sourcename is ${shown(slice)}, which is not a valid name: ${problem}. The endpoint is skipped.`)
      continue
    }
    const key = `${slice} ${record.v4.join()} ${record.v6.join()}`
    if (seen.has(key)) {
      report(`${where} has the addresses of an earlier endpoint. It is skipped.`)
      continue
    }
    seen.add(key)
    const records = slices.get(slice)
    if (records) records.push(record)
    else slices.set(slice, [record])
  }
  return slices
}

/** All addresses of an endpoint, of both families, are one record, as in the file. */
function endpointIn(given: StateEndpoint, where: string, share: Sharing, report: Report): EndpointRecord | undefined {
  const { v4, v6 } = addressesIn(given.endpoint?.ips, `${where}.endpoint.ips`, report)
  if (v4.length + v6.length === 0) {
    report(`${where} has no usable IP address. The endpoint is skipped.`)
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
 * Go kpng's files have `ready` only, and an endpoint that is not ready usually does not serve either. So a missing `serving` is the
 * same as `ready`. kpng writes `serving` only if it differs, because Go kpng's reader rejects fields that it does not know.
 */
function conditionsIn(given: StateEndpoint['conditions']): EndpointRecord['conditions'] {
  const ready = given?.ready ?? true
  return conditionsOf({ ready, serving: given?.serving ?? ready, terminating: given?.terminating ?? false })
}

function podNameIn(given: StateEndpoint, where: string, report: Report): string {
  const name = given.podname ?? ''
  const problem = name === '' ? undefined : nameProblem(name)
  if (problem === undefined) return name
  report(`${where}.podname is ${shown(name)}, which is not a valid name: ${problem}. It is ignored.`)
  return ''
}

/** Go kpng writes an empty list if an endpoint has no ports of its own. Then the service's target ports count, unless `noports` is set. */
function portsIn(given: StateEndpoint, where: string, report: Report): EndpointRecord['ports'] {
  const overrides = given.endpoint?.portoverrides
  if (!overrides || overrides.length === 0) return given.noports ? none : undefined
  const ports = new Map<string, EndpointPort>()
  for (const [index, item] of overrides.entries()) {
    const name = item?.name ?? ''
    const field = `${where}.endpoint.portoverrides[${index}]`
    if (!isPort(item?.port)) report(`${field}.port is ${shown(item?.port)}; a port is 1 to 65535. It is skipped.`)
    else if (ports.has(name)) report(`${field} has the name ${shown(name)} of an earlier port. It is skipped.`)
    else ports.set(name, { name, port: item.port })
  }
  return [...ports.values()]
}

const namesIn = (given: readonly (string | null)[] | null | undefined): readonly string[] =>
  given && given.length > 0 ? given.filter((name) => name !== null) : none

/** Most endpoints of a service have the same ports and hints. Equal ones become one object, which saves memory. */
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
