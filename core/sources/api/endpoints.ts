import type { globalv1 } from '@kpng/api'
import { conditionsOf, type EndpointRecord, none } from '../../store/index.js'

/** An endpoint of the global stream as the store keeps it. */
export function endpointRecord(info: globalv1.EndpointInfo): EndpointRecord {
  const { endpoint, conditions, topology, hints } = info
  const serving = conditions?.serving
  return {
    podName: info.podName,
    hostname: endpoint?.hostname ?? '',
    v4: orNone(endpoint?.ips?.v4),
    v6: orNone(endpoint?.ips?.v6),
    ports: portsOf(info),
    node: topology?.node ?? '',
    zone: topology?.zone ?? '',
    hints:
      hints && (hints.zones.length > 0 || hints.nodes.length > 0)
        ? { zones: hints.zones, nodes: hints.nodes }
        : undefined,
    // A Go core leaves the conditions out when the slice had none: that means ready.
    conditions: conditions
      ? conditionsOf({
          ready: conditions.ready,
          terminating: conditions.terminating,
          ...(serving === undefined ? {} : { serving }),
        })
      : conditionsOf(),
  }
}

/** A Go core, and a state file, may leave the ports out; then the target ports of the service count. */
function portsOf({ endpoint, noPorts }: globalv1.EndpointInfo): EndpointRecord['ports'] {
  const listed = endpoint?.portOverrides ?? []
  if (listed.length === 0) return noPorts ? none : undefined
  return listed.map(({ name, port, protocol }) => ({ name, port, ...(protocol !== undefined && { protocol }) }))
}

const orNone = (values: string[] | undefined): readonly string[] => (values && values.length > 0 ? values : none)
