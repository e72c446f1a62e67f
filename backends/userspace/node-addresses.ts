import { type Cidr, CidrSet, type Family, familyOf, unsafeKindOf } from '@kpng/api'
import { type NodeFacts, nodePortHosts, wildcards } from '@kpng/dataplane'
import { type InterfaceAddress, isLinkLocal } from '@kpng/linux'
import type { NodeAddresses } from './capture/capture.js'
import type { InsideAddresses } from './insiders.js'

type ByFamily<T> = Readonly<Record<Family, T>>

const byFamily = <T>(make: (family: Family) => T): ByFamily<T> => ({ IPv4: make('IPv4'), IPv6: make('IPv6') })

/** The addresses of this node. As of the last `update`. */
export class NodeAddressBook {
  #node: NodeFacts | undefined
  /** For captures. */
  addresses: NodeAddresses = {
    insideCidrs: [],
    nodeIps: byFamily(() => undefined),
    nodePortCidrs: byFamily(() => []),
    nodePortHosts: byFamily(() => []),
    nodePortIps: byFamily(() => []),
  }
  /** For those who accept clients. */
  inside: InsideAddresses = { own: [], inside: [] }

  /** Returns whether anything changed that captures must know. */
  update(node: NodeFacts, onMachine: readonly InterfaceAddress[]): boolean {
    const before = JSON.stringify(this.addresses)
    this.#node = node
    // Those of this node are usually inside those of the cluster.
    const inside: readonly Cidr[] = new CidrSet([...node.pods.cidrs, ...node.onNode.cidrs]).cidrs
    this.inside = { own: [...new Set([...node.addresses, ...onMachine.map(({ ip }) => ip)])], inside }
    this.addresses = {
      insideCidrs: inside.map(({ text }) => text),
      nodeIps: byFamily((family) => this.#chooseIp(family, onMachine)),
      nodePortCidrs: byFamily((family) => node.nodePortCidrs[family].map(({ text }) => text)),
      nodePortHosts: byFamily((family) => nodePortHosts(node, family, onMachine)),
      nodePortIps: byFamily((family) => ipsOf(nodePortHosts(node, family, onMachine), family, onMachine)),
    }
    return JSON.stringify(this.addresses) !== before
  }

  /** The first that the Node names; else the one chosen before, so that nobody has to move; else the first of an interface. */
  #chooseIp(family: Family, onMachine: readonly InterfaceAddress[]): string | undefined {
    // Nobody else can send to the others.
    const usable = onMachine.filter(({ ip }) => familyOf(ip) === family && unsafeKindOf(ip) === undefined)
    const has = (ip: string | undefined) => usable.some((address) => address.ip === ip)
    // What somebody put on the loopback interface may be the address of a Service: it must be named.
    const chosen = [...(this.#node?.addresses ?? []), this.addresses.nodeIps[family]].find(has)
    return chosen ?? usable.find((address) => !address.isInternal)?.ip
  }
}

/** IPv6 link-local addresses are left out: without their interface they cannot be listened at. */
const ipsOf = (hosts: readonly string[], family: Family, onMachine: readonly InterfaceAddress[]): readonly string[] =>
  hosts.includes(wildcards[family])
    ? [...new Set(onMachine.map(({ ip }) => ip))].filter(
        (ip) => familyOf(ip) === family && !(family === 'IPv6' && isLinkLocal(ip)),
      )
    : hosts
