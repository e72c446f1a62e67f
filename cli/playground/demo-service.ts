import type { EndpointSlice, Playground, Service } from '@kpng/playground'

// What there is to see of the demo Service: read from the API server's objects, as plain data.

export const demoName = 'web'

export interface EndpointView {
  readonly pod: string
  /** `127.10.0.2:8080` */
  readonly address: string
  readonly state: 'ready' | 'not ready' | 'draining' | 'ending'
}

export interface ServiceView {
  readonly type: string
  /** Where to call it. Missing: it cannot be called, and `problem` says why. */
  readonly target?: { readonly host: string; readonly port: number }
  readonly problem?: string
  readonly nodePort?: number
  /** The proxy that a label gives the Service to. Missing: kpng. */
  readonly otherProxy?: string
  readonly endpoints: readonly EndpointView[]
}

type Objects = Pick<Playground['objects'], 'get' | 'list'>

/** The demo Service as it is now, however it was edited. Undefined: there is none. */
export function demoService(objects: Objects): ServiceView | undefined {
  const service = objects.get<Service>('Service', demoName)
  if (!service) return undefined
  const { type = 'ClusterIP', clusterIP = '', ports = [] } = service.spec
  const endpoints = endpointsOf(objects)
  const port = ports.find(({ protocol = 'TCP' }) => protocol === 'TCP')
  if (type === 'ExternalName') return { type, endpoints, problem: 'an ExternalName is only a name in DNS' }
  if (clusterIP === 'None') return { type, endpoints, problem: 'it is headless: it has no cluster IP' }
  if (!port) return { type, endpoints, problem: 'it has no TCP port' }
  const otherProxy = service.metadata.labels?.['service.kubernetes.io/service-proxy-name']
  return {
    type,
    endpoints,
    target: { host: clusterIP, port: port.port },
    ...(port.nodePort ? { nodePort: port.nodePort } : {}),
    ...(otherProxy === undefined ? {} : { otherProxy }),
  }
}

/** What of a Service is in the data plane: if this part is the same, there is nothing to sync. */
export function servedPart(service: ServiceView | undefined): unknown {
  if (!service?.target || service.otherProxy !== undefined) return undefined
  const { target, nodePort, endpoints } = service
  const ready = endpoints.filter(({ state }) => state === 'ready')
  const used = ready.length > 0 ? ready : endpoints.filter(({ state }) => state === 'draining')
  return { target, nodePort, used: used.map(({ address }) => address).sort() }
}

function endpointsOf(objects: Objects): EndpointView[] {
  const slices = objects.list<EndpointSlice>('EndpointSlice', {
    namespace: 'default',
    labelSelector: `kubernetes.io/service-name=${demoName}`,
  })
  const views = slices.flatMap(({ endpoints, ports = [] }) =>
    (endpoints ?? []).map(({ addresses, conditions = {}, targetRef }): EndpointView => {
      const { ready = true, serving = ready, terminating = false } = conditions
      const state = terminating ? (serving ? 'draining' : 'ending') : ready ? 'ready' : 'not ready'
      return { pod: targetRef?.name ?? '', address: `${addresses[0]}:${ports[0]?.port ?? 'any'}`, state }
    }),
  )
  // Two slices may have the same endpoint while it moves from one to the other.
  const unique = [...new Map(views.map((view) => [view.address, view])).values()]
  return unique.sort((a, b) => (a.pod < b.pod ? -1 : a.pod > b.pod ? 1 : 0))
}

export const addressText = ({ target }: ServiceView): string => (target ? `${target.host}:${target.port}` : '')

const whereabouts = (service: ServiceView): string =>
  service.target ? `at ${addressText(service)}` : `cannot be called: ${service.problem}`

/** What differs between two states of the Service, in a few words; empty if nothing does. */
export function describeChange(before: ServiceView | undefined, after: ServiceView | undefined): string {
  if (!after) return before ? `Service ${demoName} deleted` : ''
  const parts: string[] = []
  const said = (label: string, old: unknown, now: unknown) => {
    if (old !== now) parts.push(`${label}${now ?? 'none'}`)
  }
  if (!before) parts.push(`Service ${demoName} ${whereabouts(after)}`)
  else {
    said('type ', before.type, after.type)
    said('now ', whereabouts(before), whereabouts(after))
    said('node port ', before.nodePort, after.nodePort)
    said('given to the proxy ', before.otherProxy ?? 'kpng', after.otherProxy ?? 'kpng')
  }
  return [...parts, ...endpointChanges(before?.endpoints ?? [], after.endpoints)].join(', ')
}

function endpointChanges(before: readonly EndpointView[], after: readonly EndpointView[]): string[] {
  const old = new Map(before.map((endpoint) => [endpoint.pod, endpoint]))
  const changed = new Map<string, string[]>()
  const note = (state: string, pod: string) => changed.set(state, [...(changed.get(state) ?? []), pod])
  for (const { pod, address, state } of after) {
    const known = old.get(pod)
    if (known?.state !== state) note(state, pod)
    else if (known.address !== address) note('moved', pod)
    old.delete(pod)
  }
  for (const pod of old.keys()) note('gone', pod)
  return [...changed].map(([state, pods]) => `${pods.length > 1 ? `${pods.length} pods` : pods[0]} ${state}`)
}
