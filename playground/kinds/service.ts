import type { Service } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { labelsText } from '../selectors/labels.js'
import { allocate } from '../services/allocate.js'
import { defaultService } from '../services/defaults.js'
import type { ServiceNetwork } from '../services/network.js'
import { validateService } from '../services/validate.js'
import { ageColumn, defineKind, type Kind, nameColumn } from './kind.js'

function externalAddresses({ spec, status }: Service): string {
  const own = spec.externalIPs ?? []
  if (spec.type === 'ExternalName') return spec.externalName ?? ''
  if (spec.type !== 'LoadBalancer') return own.join(',') || '<none>'
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '')
  return [...ingress, ...own].join(',') || '<pending>'
}

const ports = ({ spec }: Service): string =>
  (spec.ports ?? [])
    .map(({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ''}/${protocol}`)
    .join(',') || '<none>'

function row(object: KubeObject, now: number): unknown[] {
  const service = object as Service
  const clusterIp = service.spec.clusterIP || '<none>'
  const { type } = service.spec
  const created = age(service.metadata.creationTimestamp, now)
  return [
    service.metadata.name,
    type,
    clusterIp,
    externalAddresses(service),
    ports(service),
    created,
    labelsText(service.spec.selector) || '<none>',
  ]
}

/** Services, with the defaults, the checks and the allocations of the API server. */
export const serviceKind = (network: ServiceNetwork): Kind =>
  defineKind({
    group: '',
    version: 'v1',
    kind: 'Service',
    plural: 'services',
    singular: 'service',
    shortNames: ['svc'],
    categories: ['all'],
    namespaced: true,
    type: 'io.k8s.api.core.v1.Service',
    nameRule: 'label1035',
    hasStatus: true,
    columns: [
      nameColumn,
      { name: 'Type', description: 'How the Service is exposed.' },
      { name: 'Cluster-IP', description: 'The virtual address.' },
      { name: 'External-IP', description: 'Addresses of load balancers, and external IPs.' },
      { name: 'Port(s)', description: 'The ports, and their node ports.' },
      ageColumn,
      { name: 'Selector', priority: 1, description: 'The labels of the pods.' },
    ],
    row,
    fields: {
      'spec.type': (object) => (object as Service).spec.type ?? '',
      'spec.clusterIP': (object) => (object as Service).spec.clusterIP ?? '',
    },
    strategy: {
      prepare: (object, old) => defaultService(object as Service, old as Service | undefined),
      validate: (object, old) => validateService(object as Service, old as Service | undefined),
      allocate: (object) => allocate(object as Service, network),
    },
  })
