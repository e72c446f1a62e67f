import type { ClientKind, Diagnosis, Explanation, Finding, FrontendAnswer, HeldAnswer, RouteAnswer } from '@kpng/api'
import { here, keyOf, liveService, type MockPort, type MockService, type Selected, select } from './mock-cluster.js'

// Answers in the form of `kpng explain`, about the cluster that does not exist.

const clientTexts: Readonly<Record<ClientKind, string>> = {
  pod: 'a pod',
  node: 'this node',
  outside: 'outside the cluster',
}

export interface MockExplainOptions {
  /** Whether the data plane can be read back. */
  readonly canReadBack: boolean
  /** Whether the core can be asked about endpoints that are not used. */
  readonly knowsAll: boolean
}

export function mockExplanation(service: MockService, from: ClientKind, options: MockExplainOptions): Explanation {
  const selected = select(service)
  const frontends = service.ports.flatMap((port) => frontendsOf(service, port, from, selected, options))
  const outcomes = frontends.flatMap(({ routes }) => routes.map(({ outcome }) => outcome))
  const works = outcomes.every((outcome) => outcome === 'endpoint')
  const { verdict, headline, reason, endpoints } = liveService(service)
  const known = { service: keyOf(service), isKnown: true, nearest: [], endpoints: endpointsOf(service, selected) }
  return {
    ...{ schemaVersion: 2, node: here.node, question: keyOf(service), works, frontends },
    diagnosis: {
      ...{ service: keyOf(service), verdict, headline, reason, used: endpoints },
      findings: service.problems.map((what) => ({ ...problem, what })),
      unknown: options.knowsAll ? [] : ['The core is older and cannot say which endpoints are left out.'],
    },
    ...(options.knowsAll ? { service: known } : {}),
  }
}

const problem: Omit<Finding, 'what'> = {
  code: 'KPNG-S010',
  level: 'problem',
  why: 'The other Service gets the traffic.',
  todo: 'Give each Service its own address or port.',
  command: 'kubectl get services -A',
}

export const nothingFound: Diagnosis = {
  ...{ service: '', verdict: 'absent', headline: '', reason: '', findings: [], used: 0, unknown: [] },
}

const words: Readonly<Record<string, string>> = {
  ...{ 'not-ready': 'not ready', 'hints-other-zone': 'hinted to another zone', 'not-local': 'on another node' },
}

const endpointsOf = (service: MockService, selected: readonly Selected[]) =>
  selected.map(({ endpoint, scopes, reason }) => {
    const { ips, pod, node, zone, ready, serving, terminating } = endpoint
    return {
      ...{ ips, pod, node, zone, ready, serving, terminating, scopes },
      ports: service.ports.map(({ targetPort }) => targetPort),
      slice: `${service.name}-x7k2p`,
      isLocal: node === here.node,
      ...(reason ? { reason, why: words[reason] ?? reason } : {}),
    }
  })

function frontendsOf(
  service: MockService,
  port: MockPort,
  from: ClientKind,
  selected: readonly Selected[],
  options: MockExplainOptions,
): FrontendAnswer[] {
  const withPort = (ip: string) => `${ip.includes(':') ? `[${ip}]` : ip}:${port.port}/${port.protocol}`
  const families = service.clusterIps.length > 1 ? ['IPv4', 'IPv6'] : ['IPv4']
  const ids: readonly (readonly [string, string])[] = [
    ...service.clusterIps.map((ip) => [withPort(ip), 'cluster IP'] as const),
    ...families
      .filter(() => port.nodePort > 0)
      .map((family) => [`${family} node port ${port.nodePort}/${port.protocol}`, 'node port'] as const),
    ...service.externalIps.map((ip) => [withPort(ip), 'load-balancer IP'] as const),
  ]
  return ids.map(([id, kind], index) => {
    const family = id.startsWith('[') || id.startsWith('IPv6') ? 'IPv6' : 'IPv4'
    const scope = kind === 'cluster IP' ? 'internal' : from === 'outside' ? 'external' : 'cluster'
    const endpoints = selected
      .filter(({ scopes }) => scopes.includes(scope))
      .flatMap(({ endpoint }) => endpoint.ips.filter((ip) => ip.includes(':') === (family === 'IPv6')))
      .map((ip) => `${ip.includes(':') ? `[${ip}]` : ip}:${port.targetPort}`)
    return {
      ...{ id, kind, service: keyOf(service), portName: service.ports.length > 1 ? port.name : '' },
      routes: [routeOf(service, from, kind, endpoints)],
      notes: notesOf(service, kind),
      ...(options.canReadBack ? { held: heldOf(service, endpoints, index) } : {}),
    }
  })
}

function routeOf(service: MockService, from: ClientKind, kind: string, endpoints: readonly string[]): RouteAnswer {
  const who = clientTexts[from]
  if (endpoints.length === 0) {
    const isRefused = !service.endpoints.some(({ serving }) => serving)
    const sentence = isRefused
      ? `A connection from ${who} is refused: no endpoint serves it.`
      : `A connection from ${who} is dropped: the traffic policy is Local, and no endpoint on this node serves it.`
    return { from: who, outcome: isRefused ? 'refused' : 'dropped', sentence, endpoints: [] }
  }
  const among = endpoints.length === 1 ? 'its only endpoint' : `one of ${endpoints.length} endpoints at random`
  const isMasqueraded = kind === 'cluster IP' ? from === 'outside' : !service.externalLocal || from === 'node'
  const sees = isMasqueraded ? "the node's address" : "the client's address"
  return {
    ...{ from: who, outcome: 'endpoint', endpoints },
    sentence: `A connection from ${who} goes to ${among}. The endpoint sees ${sees}.`,
  }
}

function notesOf({ affinitySeconds, sourceRanges }: MockService, kind: string): string[] {
  return [
    ...(affinitySeconds > 0
      ? [`Session affinity: a client stays with its endpoint until ${affinitySeconds} s after its last connection.`]
      : []),
    ...(sourceRanges.length > 0 && kind === 'load-balancer IP'
      ? [`Only clients in ${sourceRanges.join(', ')} may connect.`]
      : []),
  ]
}

function heldOf(service: MockService, endpoints: readonly string[], index: number): HeldAnswer {
  const isRight = !service.differs || index > 0
  return {
    isRight,
    differences: isRight ? [] : [`The data plane lacks ${endpoints[0] ?? 'it'}.`],
    connections: 40 + ((index * 7919) % 900),
    ...(service.affinitySeconds > 0 && endpoints[0]
      ? { sessionAffinity: [{ client: '10.244.3.9', endpoint: endpoints[0] }] }
      : {}),
  }
}
