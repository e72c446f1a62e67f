import { endpointsOfPort, hasEndpoints, NodeState } from '@kpng/client'
import { onTestFinished } from 'vitest'
import { changeSetsOf } from '../../../sinks/local/index.js'
import { Store } from '../../../store/index.js'
import { type WatchKubeOptions, watchKube } from '../source.js'
import type { FakeApi } from './fake-api.js'
import { quick, recordingLog } from './recording.js'
import { connectTo, startApi } from './reflecting.js'

// A small cluster, as the whole source sees it.

export const services = '/api/v1/services'
export const slices = '/apis/discovery.k8s.io/v1/endpointslices'
export const nodes = '/api/v1/nodes'
export const cidrs = '/apis/networking.k8s.io/v1/servicecidrs'

export const proxyName = 'service.kubernetes.io/service-proxy-name'

export const service = (name: string, spec: object = {}, labels: Record<string, string> = {}) => ({
  kind: 'Service',
  metadata: { namespace: 'default', name, labels },
  spec: {
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    ...spec,
  },
})

export const slice = (name: string, of: string, addresses: readonly string[], labels: Record<string, string> = {}) => ({
  kind: 'EndpointSlice',
  metadata: { namespace: 'default', name, labels: { 'kubernetes.io/service-name': of, ...labels } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints: addresses.map((address) => ({ addresses: [address], nodeName: 'node-1' })),
})

/** An API server that has every collection, but for those it is to do without. */
export async function api(...without: readonly string[]): Promise<FakeApi> {
  const server = await startApi()
  for (const path of [services, slices, nodes, cidrs]) if (!without.includes(path)) server.collections.add(path)
  return server
}

/** The source, which runs against a server until the test is over. */
export async function watch(server: FakeApi, options: Partial<WatchKubeOptions> = {}) {
  const connection = await connectTo(server.url)
  const store = new Store()
  const log = recordingLog()
  const stop = new AbortController()
  const events: string[] = []
  const onEvent = (resource: string, type: string) => events.push(`${resource} ${type}`)
  const done = watchKube({ store, log, connection, signal: stop.signal, timing: quick, onEvent, ...options })
  onTestFinished(async () => {
    stop.abort()
    await done
  })
  return { store, log, events }
}

/**
 * What a backend on a node would serve, sorted: `service port: ip:port` for each usable endpoint, or `service port: nowhere` if
 * no endpoint in the cluster serves the port.
 */
export async function servedOn(nodeName: string, store: Store): Promise<string[]> {
  const state = new NodeState(nodeName)
  for await (const changeSet of changeSetsOf(store)({ nodeName }, new AbortController().signal)) {
    state.apply(changeSet)
    break
  }
  const served = [...state.services.values()].flatMap((entry) =>
    entry.service.ports.flatMap((port) => {
      const where = endpointsOfPort(entry, port)
        .filter(({ scopes }) => scopes.internal)
        .map(({ endpoint, port: number }) => `${endpoint.ips?.v4[0]}:${number}`)
      if (!hasEndpoints(entry, port, 'IPv4')) where.push('nowhere')
      return where.map((place) => `${entry.service.name} ${port.name}: ${place}`)
    }),
  )
  return served.sort()
}
