import type { globalv1, localv1 } from '@kpng/api'
import type { ServiceEntry, Store } from '../../store/index.js'
import { serviceText } from './service-text.js'
import { listOf, mapOf, textOf } from './yaml-text.js'

/**
 * Renders the whole state. It keeps the text of each service entry. An entry that did not change is the same object the next time,
 * so only the services that changed are rendered again.
 */
export class StateText {
  /** Those of the last state only. Not a WeakMap: the change log holds many old entries, and their texts would stay in memory. */
  #services: ReadonlyMap<ServiceEntry, string> = new Map()

  /** The parts of the file, in order. */
  render(store: Store): string[] {
    const nodes = [...store.nodes.values()].sort(byName)
    const services = store.entries().filter(hasService).sort(byPath)
    const cidrs = [...store.serviceCidrs.values()].sort(byName)
    this.#services = new Map(services.map((entry) => [entry, this.#services.get(entry) ?? serviceText(entry)]))
    return [
      nodes.length === 0 ? 'nodes: []\n' : 'nodes:\n',
      ...nodes.map(nodeText),
      services.length === 0 ? 'services: []\n' : 'services:\n',
      ...this.#services.values(),
      // Written only if needed: Go kpng's reader rejects fields that it does not know.
      ...(cidrs.length === 0 ? [] : ['servicecidrs:\n']),
      ...cidrs.map(cidrText),
    ]
  }
}

type ServedEntry = ServiceEntry & { readonly service: localv1.Service }

/** Endpoints whose service is not known are not written. */
const hasService = (entry: ServiceEntry): entry is ServedEntry => entry.service !== undefined

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)
const byPath = (a: ServiceEntry, b: ServiceEntry): number => (a.path < b.path ? -1 : 1)

function nodeText(node: globalv1.Node): string {
  const topology = node.topology
    ? `  topology:\n    node: ${textOf(node.topology.node)}\n    zone: ${textOf(node.topology.zone)}\n`
    : '  topology: null\n'
  return [
    `- name: ${textOf(node.name)}\n`,
    topology,
    mapOf('  ', 'labels', node.labels),
    mapOf('  ', 'annotations', node.annotations),
    node.addresses.length === 0 ? '' : listOf('  ', 'addresses', node.addresses),
    node.podCidrs.length === 0 ? '' : listOf('  ', 'podcidrs', node.podCidrs),
    node.deleting ? '  deleting: true\n' : '',
  ].join('')
}

const cidrText = ({ name, cidrs }: localv1.ServiceCIDR): string =>
  `- name: ${textOf(name)}\n${listOf('  ', 'cidrs', cidrs)}`
