import { create } from '@bufbuild/protobuf'
import { globalv1, localv1, nameProblem, nearestNames, parseIp } from '@kpng/api'
import { shown } from '../../kubernetes/fields.js'
import type { ContentBuilder } from './content.js'
import { check } from './shape.js'
import { endpointsFromState } from './state-endpoints.js'
import { cidrsIn, type StateFile, type StateNode, stateShape } from './state-format.js'
import { serviceFromState } from './state-service.js'

/** Whether a document is meant as a state file: it is empty, or one of its fields is, or is nearly, one of a state file. */
export function isStateFile(document: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(document)
  return names.length === 0 || names.some((name) => nearestNames(name, Object.keys(stateShape.fields)).length > 0)
}

/** Reads a document in the format of Go kpng's state file. Throws ShapeError. */
export function readStateFile(document: unknown, content: ContentBuilder): void {
  const state = check(document, stateShape) ?? {}
  for (const [index, node] of (state.nodes ?? []).entries()) readNode(node ?? {}, index, content)
  for (const [index, item] of (state.services ?? []).entries()) readService(item ?? {}, index, content)
  for (const [index, item] of (state.servicecidrs ?? []).entries()) {
    const name = item?.name ?? ''
    if (!named(name, `servicecidrs[${index}]`, content)) continue
    const report = content.reportFor(`ServiceCIDR ${name}`)
    content.addServiceCidr(create(localv1.ServiceCIDRSchema, { name, cidrs: cidrsIn(item?.cidrs, 'cidrs', report) }))
  }
}

function named(name: string, where: string, content: ContentBuilder): boolean {
  const problem = nameProblem(name)
  if (problem === undefined) return true
  content.skip(where, `Its name is ${shown(name)}, which is not a valid name: ${problem}. It is skipped.`)
  return false
}

function readService(item: Item<StateFile['services']>, index: number, content: ContentBuilder): void {
  const name = item.service?.name ?? ''
  const namespace = item.service?.namespace || 'default'
  if (!named(name, `services[${index}].service`, content)) return
  if (!named(namespace, `services[${index}].service.namespace`, content)) return
  const report = content.reportFor(`Service ${namespace}/${name}`)
  if (!content.addService(serviceFromState(item.service ?? {}, { namespace, name }, report))) return
  for (const [slice, endpoints] of endpointsFromState(item.endpoints ?? [], name, report)) {
    content.addEmbedded({ namespace, name: freeSliceName(namespace, slice, name, content), service: name, endpoints })
  }
}

/** A slice belongs to one service. Go kpng did not check the name, so two services may use the same one. */
function freeSliceName(namespace: string, name: string, service: string, content: ContentBuilder): string {
  let free = name
  while (content.hasSlice(namespace, free)) free = `${service}.${free}`
  return free
}

function readNode(given: StateNode, index: number, content: ContentBuilder): void {
  const name = given.name ?? ''
  if (!named(name, `nodes[${index}]`, content)) return
  const report = content.reportFor(`Node ${name}`)
  const addresses = (given.addresses ?? []).flatMap((text) => {
    const ip = parseIp(text ?? '')
    if (!ip) report(`addresses has ${shown(text)}, which is not an IP address. The address is skipped.`)
    return ip ? [ip.text] : []
  })
  content.addNode(
    create(globalv1.NodeSchema, {
      name,
      labels: { ...given.labels },
      annotations: { ...given.annotations },
      ...(given.topology && { topology: { node: given.topology.node ?? '', zone: given.topology.zone ?? '' } }),
      addresses: [...new Set(addresses)],
      podCidrs: cidrsIn(given.podcidrs, 'podcidrs', report),
      deleting: given.deleting ?? false,
    }),
  )
}

type Item<List> = NonNullable<NonNullable<List> extends readonly (infer Entry)[] ? Entry : never>
