import { type Fields, isFields, shown } from '../../kubernetes/fields.js'
import {
  endpointsFromKubernetes,
  type KeptKeys,
  nodeFromKubernetes,
  type ProxySelection,
  selectionForProxy,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../../kubernetes/index.js'
import { maxDepth } from '../yaml.js'
import type { ContentBuilder } from './content.js'
import { check, type Shape, ShapeError, wrongKind } from './shape.js'

export interface ManifestOptions {
  /** The name of this proxy; empty for the cluster's default proxy. */
  readonly serviceProxyName: string
  readonly intern: (text: string) => string
  /** Which labels and annotations are passed on. */
  readonly keptOfServices: KeptKeys
  readonly keptOfNodes: KeptKeys
}

export const isManifest = (document: Fields): boolean => 'kind' in document || 'apiVersion' in document

/** Reads Kubernetes objects. Throws ShapeError. */
export function readManifest(document: Fields, options: ManifestOptions, content: ContentBuilder): void {
  const selection = selectionForProxy(options.serviceProxyName)
  readObject(document, [], selection, options, content)
}

function readObject(
  object: Fields,
  place: readonly (string | number)[],
  selection: ProxySelection,
  options: ManifestOptions,
  content: ContentBuilder,
): void {
  const { kind, apiVersion } = object
  if (place.length > maxDepth) throw new ShapeError(place, 'value', () => 'Lists are nested too deep.')
  if (typeof kind === 'string' && kind.endsWith('List')) {
    if (!Array.isArray(object.items)) throw wrongKind([...place, 'items'], 'a list', object.items)
    for (const [index, item] of object.items.entries()) {
      if (!isFields(item)) throw wrongKind([...place, 'items', index], 'an object', item)
      // The items of a typed list, such as a ServiceList, have no kind of their own.
      const inherited = kind === 'List' ? {} : { kind: kind.slice(0, -'List'.length), apiVersion }
      readObject({ ...inherited, ...item }, [...place, 'items', index], selection, options, content)
    }
    return
  }
  const known = typeof kind === 'string' && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!known || (apiVersion !== undefined && !known.apiVersions.includes(apiVersion as string))) {
    const name = `${apiVersion === undefined ? '' : `${shown(apiVersion)} `}${shown(kind)}`
    const reads =
      'kpng reads Service, Node (v1), EndpointSlice (discovery.k8s.io/v1) and ServiceCIDR (networking.k8s.io)'
    content.skip(`objects of kind ${name}`, `${reads}. They are skipped.`)
    return
  }
  try {
    check(object, manifestShape)
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error
    throw error.below(place)
  }
  known.read(object, selection, options, content)
}

interface Kind {
  readonly apiVersions: readonly string[]
  read(object: Fields, selection: ProxySelection, options: ManifestOptions, content: ContentBuilder): void
}

const kinds: Readonly<Record<string, Kind>> = {
  Service: { apiVersions: ['v1'], read: readService },
  EndpointSlice: {
    apiVersions: ['discovery.k8s.io/v1'],
    read(object, selection, options, content) {
      if (!selection.takesSlice(object)) return
      const report = content.reportFor(nameOf('EndpointSlice', object))
      const slice = endpointsFromKubernetes(object, report, options.intern)
      if (slice) content.addSlice(slice)
    },
  },
  Node: {
    apiVersions: ['v1'],
    read(object, _selection, options, content) {
      const node = nodeFromKubernetes(object, options.keptOfNodes, content.reportFor(nameOf('Node', object)))
      if (node) content.addNode(node)
    },
  },
  ServiceCIDR: {
    apiVersions: ['networking.k8s.io/v1', 'networking.k8s.io/v1beta1', 'networking.k8s.io/v1alpha1'],
    read(object, selection, _options, content) {
      if (!selection.takesServiceCidrs) return
      const cidr = serviceCidrFromKubernetes(object, content.reportFor(nameOf('ServiceCIDR', object)))
      if (cidr) content.addServiceCidr(cidr)
    },
  },
}

function readService(
  object: Fields,
  selection: ProxySelection,
  options: ManifestOptions,
  content: ContentBuilder,
): void {
  if (!selection.takesService(object)) return
  const report = content.reportFor(nameOf('Service', object))
  let complained = false
  const service = serviceFromKubernetes(object, options.keptOfServices, (reason) => {
    complained = true
    report(reason)
  })
  if (service) content.addService(service)
  else if (!complained && !isExternalName(object)) {
    report(
      'It has no spec.clusterIP, and there is no API server to allocate one. Set it to an IP address or None. The Service is skipped.',
    )
  }
}

const isExternalName = (object: Fields): boolean => isFields(object.spec) && object.spec.type === 'ExternalName'

const nameOf = (kind: string, { metadata }: Fields): string => {
  const { namespace = 'default', name = '' } = isFields(metadata) ? metadata : {}
  return kind === 'Node' || kind === 'ServiceCIDR' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

const map = { fields: {}, others: 'allowed' } as const
const maps = { list: map } as const
const values = { list: 'any' } as const

/**
 * Where the objects that kpng reads have maps and lists. A text in such a place is usually wrong indentation, and what belongs
 * there would be lost. So the file is rejected with line and column, and its last good content stays in use. What is inside of
 * the maps and lists is checked where it is read.
 */
const manifestShape = {
  fields: {
    metadata: { fields: { labels: map, annotations: map }, others: 'allowed' },
    spec: {
      fields: {
        ports: maps,
        clusterIPs: values,
        externalIPs: values,
        loadBalancerSourceRanges: values,
        sessionAffinityConfig: { fields: { clientIP: map }, others: 'allowed' },
        podCIDRs: values,
        taints: maps,
        cidrs: values,
      },
      others: 'allowed',
    },
    status: {
      fields: { loadBalancer: { fields: { ingress: maps }, others: 'allowed' }, addresses: maps },
      others: 'allowed',
    },
    ports: maps,
    endpoints: {
      list: {
        fields: {
          addresses: values,
          conditions: map,
          hints: { fields: { forZones: maps, forNodes: maps }, others: 'allowed' },
          targetRef: map,
        },
        others: 'allowed',
      },
    },
  },
  others: 'allowed',
} as const satisfies Shape
