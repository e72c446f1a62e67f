import { fromBinary } from '@bufbuild/protobuf'
import { globalv1 } from '@kpng/api'
import { internTable } from '../../kubernetes/index.js'
import { conditionsOf, type EndpointPort, type EndpointRecord, none } from '../../store/index.js'

/** Reads the endpoints of the global stream as the store keeps them: what many have in common is one object. */
export class EndpointReader {
  readonly #intern = internTable()
  readonly #ports = new Map<string, readonly EndpointPort[]>()

  read(bytes: Uint8Array): EndpointRecord {
    const info = fromBinary(globalv1.EndpointInfoSchema, bytes)
    const { endpoint, conditions, topology, hints } = info
    const serving = conditions?.serving
    return {
      podName: info.podName,
      hostname: endpoint?.hostname ?? '',
      v4: orNone(endpoint?.ips?.v4),
      v6: orNone(endpoint?.ips?.v6),
      ports: this.#portsOf(info),
      node: this.#intern(topology?.node ?? ''),
      zone: this.#intern(topology?.zone ?? ''),
      hints:
        hints && (hints.zones.length > 0 || hints.nodes.length > 0)
          ? { zones: hints.zones.map(this.#intern), nodes: hints.nodes.map(this.#intern) }
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
  #portsOf({ endpoint, noPorts }: globalv1.EndpointInfo): EndpointRecord['ports'] {
    const listed = endpoint?.portOverrides ?? []
    if (listed.length === 0) return noPorts ? none : undefined
    const ports = listed.map(({ name, port, protocol }) => ({
      name,
      port,
      ...(protocol !== undefined && { protocol }),
    }))
    const text = JSON.stringify(ports)
    const known = this.#ports.get(text)
    if (known) return known
    if (this.#ports.size >= maxPortLists) this.#ports.clear()
    this.#ports.set(text, ports)
    return ports
  }
}

/** More than there are different ones in any cluster. Forgetting them only costs sharing. */
const maxPortLists = 10_000

const orNone = (values: string[] | undefined): readonly string[] => (values && values.length > 0 ? values : none)
