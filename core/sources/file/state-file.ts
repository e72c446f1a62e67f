import { create } from '@bufbuild/protobuf'
import { globalv1, localv1, parseIp } from '@kpng/api'
import { nameProblem, type Place, pathOf, shown } from '../../kubernetes/fields.js'
import type { ContentBuilder } from './content.js'
import { check } from './shape.js'
import { endpointsFromState } from './state-endpoints.js'
import { cidrsOf } from './state-ips.js'
import { serviceFromState } from './state-service.js'
import { type StateFile, type StateNode, stateShape } from './state-shape.js'

/** Whether a document looks like a state file at all. */
export const isStateFile = (document: Readonly<Record<string, unknown>>): boolean =>
  Object.keys(document).some((name) => Object.hasOwn(stateShape.fields, name))

/** Reads a document in the layout of Go kpng's state file. Throws WrongKind. */
export function readStateFile(document: unknown, content: ContentBuilder): void {
  const state = check(document, stateShape, unknownFields(content)) ?? {}
  for (const [index, node] of (state.nodes ?? []).entries()) readNode(node ?? {}, index, content)
  for (const [index, item] of (state.services ?? []).entries()) readService(item ?? {}, index, content)
  for (const [index, item] of (state.servicecidrs ?? []).entries()) {
    const name = item?.name ?? ''
    if (!named(name, `servicecidrs[${index}]`, content)) continue
    const report = content.reportFor(`ServiceCIDR ${name}`)
    content.addServiceCidr(create(localv1.ServiceCIDRSchema, { name, cidrs: cidrsOf(item?.cidrs, 'cidrs', report) }))
  }
}

/** Each unknown field is told once, not once an item of a list. */
function unknownFields(content: ContentBuilder): (place: Place) => void {
  const told = new Set<string>()
  return (place) => {
    const kind = pathOf(place.filter((step) => typeof step === 'string'))
    if (told.has(kind)) return
    told.add(kind)
    content.skip('', `${pathOf(place)} is not a field of a state file. It is ignored, there and elsewhere.`)
  }
}

function named(name: string, where: string, content: ContentBuilder): boolean {
  const problem = nameProblem(name)
  if (problem === undefined) return true
  content.skip(where, `Its name is ${shown(name)}, which is no name: ${problem}. It is left out.`)
  return false
}

function readService(item: Item<StateFile['services']>, index: number, content: ContentBuilder): void {
  const name = item.service?.name ?? ''
  const namespace = item.service?.namespace || 'default'
  if (!named(name, `services[${index}].service`, content)) return
  if (!named(namespace, `services[${index}].service.namespace`, content)) return
  const report = content.reportFor(`Service ${namespace}/${name}`)
  if (!content.addService(serviceFromState(item.service ?? {}, { namespace, name }, report))) return
  for (const [source, endpoints] of endpointsFromState(item.endpoints ?? [], name, report)) {
    content.addEmbedded({ namespace, name: freeSource(namespace, source, name, content), service: name, endpoints })
  }
}

/** A source belongs to one service. Go kpng did not care for the name, so a second service with the same one is not refused. */
function freeSource(namespace: string, source: string, service: string, content: ContentBuilder): string {
  let free = source
  while (content.ownerOf(namespace, free) !== undefined) free = `${service}.${free}`
  return free
}

function readNode(given: StateNode, index: number, content: ContentBuilder): void {
  const name = given.name ?? ''
  if (!named(name, `nodes[${index}]`, content)) return
  const report = content.reportFor(`Node ${name}`)
  const addresses = (given.addresses ?? []).flatMap((text) => {
    const ip = parseIp(text ?? '')
    if (!ip) report(`addresses has ${shown(text)}, which is no IP address. The address is left out.`)
    return ip ? [ip.text] : []
  })
  content.addNode(
    create(globalv1.NodeSchema, {
      name,
      labels: { ...given.labels },
      annotations: { ...given.annotations },
      ...(given.topology && { topology: { node: given.topology.node ?? '', zone: given.topology.zone ?? '' } }),
      addresses: [...new Set(addresses)],
      podCidrs: cidrsOf(given.podcidrs, 'podcidrs', report),
      deleting: given.deleting ?? false,
    }),
  )
}

type Item<List> = NonNullable<NonNullable<List> extends readonly (infer Entry)[] ? Entry : never>
