import type { ServiceProblem } from '@kpng/dataplane'
import type { ClusterFacts } from './cluster-facts.js'
import { type Check, check, counted, examplesOf, type Finding } from './finding.js'
import { certificates, clock, rights, server } from './server-checks.js'

// Services and EndpointSlices that do not do what their authors expect.

export function withoutEndpoints({ services }: Pick<ClusterFacts, 'services'>): Finding[] {
  const served = services.filter(({ isServed, readyEndpoints }) => isServed && readyEndpoints === 0)
  if (served.length === 0) return []
  const [first] = served as [ClusterFacts['services'][number]]
  return [
    {
      level: 'warning',
      what: `${counted(served.length, 'Service has', 'Services have')} no ready endpoint.`,
      ...examplesOf(
        served.map(({ path, endpoints, hasSelector }) =>
          endpoints > 0
            ? `${path}: none of ${counted(endpoints, 'endpoint')} is ready`
            : `${path}: ${hasSelector ? 'no endpoints; its selector may match no pod' : 'no endpoints and no selector: somebody must write its EndpointSlices'}`,
        ),
      ),
      why: 'Connections to them are refused.',
      todo: 'Ask why, for each of them that should work. Delete those that nobody needs.',
      command: explainCommand(first.path),
    },
  ]
}

const explainCommand = (path: string): string => {
  const [namespace, name] = path.split('/')
  return `kpng explain ${name} -n ${namespace}`
}

export function slicesWithoutService({
  slicesWithoutService: found,
}: Pick<ClusterFacts, 'slicesWithoutService'>): Finding[] {
  if (found.length === 0) return []
  const [namespace, name] = (found[0] as string).split('/')
  return [
    {
      level: 'warning',
      what: `${counted(found.length, 'EndpointSlice belongs', 'EndpointSlices belong')} to no Service.`,
      ...examplesOf(found),
      why: 'No proxy uses them. Usually a label kubernetes.io/service-name is missing or misspelled, or a Service was deleted and its hand-written slices were not.',
      todo: 'Correct the label, or delete the slices.',
      command: `kubectl -n ${namespace} get endpointslice ${name} --show-labels`,
    },
  ]
}

const isConflict = ({ kind }: ServiceProblem): boolean => kind === 'conflict'

export function claims({ notServed }: Pick<ClusterFacts, 'notServed'>): Finding[] {
  const found = sentences(notServed, isConflict)
  if (found.length === 0) return []
  return [
    {
      level: 'problem',
      what: `${counted(found.length, 'address or port is', 'addresses or ports are')} wanted by more than one Service.`,
      ...examplesOf(found),
      why: 'One Service gets the traffic, and the others do not. A cluster IP belongs to its own Service; otherwise the first name wins.',
      todo: 'Give each Service its own external IP or port. An external IP that is a cluster IP may be an attack (CVE-2020-8554).',
      command:
        "kubectl get services -A -o custom-columns='NS:.metadata.namespace,NAME:.metadata.name,EXTERNAL:.spec.externalIPs,PORTS:.spec.ports[*].port'",
    },
  ]
}

export function servedInPart({ notServed }: Pick<ClusterFacts, 'notServed'>): Finding[] {
  const found = sentences(notServed, (problem) => !isConflict(problem))
  if (found.length === 0) return []
  return [
    {
      level: 'warning',
      what: `${counted(found.length, 'part of a Service is', 'parts of Services are')} not served.`,
      ...examplesOf(found),
      why: 'Connections to these addresses and endpoints are not translated, although the Service lists them.',
      todo: 'Correct the field that the reason names.',
      command: 'kpng get services -A',
    },
  ]
}

const sentences = (notServed: ClusterFacts['notServed'], isWanted: (problem: ServiceProblem) => boolean): string[] =>
  [...notServed].flatMap(([path, problems]) => problems.filter(isWanted).map(({ sentence }) => `${path}: ${sentence}`))

export function skippedObjects({ skipped }: Pick<ClusterFacts, 'skipped'>): Finding[] {
  const found = [...skipped].map(([object, reasons]) => `${object}: ${reasons.join(' ')}`)
  if (found.length === 0) return []
  return [
    {
      level: 'warning',
      what: `${counted(found.length, 'object is', 'objects are')} skipped, completely or in part.`,
      ...examplesOf(found),
      why: 'kpng cannot use these fields, and leaves them out. The rest of the object is served.',
      todo: 'Correct the fields. Servers validate them, so look for what wrote them past the validation.',
    },
  ]
}

export function awaitingLoadBalancer({ services }: Pick<ClusterFacts, 'services'>): Finding[] {
  const waiting = services.filter(({ awaitsLoadBalancer }) => awaitsLoadBalancer).map(({ path }) => path)
  if (waiting.length === 0) return []
  return [
    {
      level: 'note',
      what: `${counted(waiting.length, 'Service')} of type LoadBalancer ${waiting.length === 1 ? 'has' : 'have'} no address.`,
      ...examplesOf(waiting),
      why: 'No load-balancer controller has given them one. They answer on their cluster IPs and node ports only.',
      todo: 'Look at the events of the Service and at the controller, or make it a NodePort Service.',
      command: `kubectl -n ${waiting[0]?.split('/')[0]} describe service ${waiting[0]?.split('/')[1]}`,
    },
  ]
}

/** Why a field is better not used, and what to use. */
const advice: Readonly<Record<string, readonly [why: string, todo: string]>> = {
  'spec.externalIPs': [
    'Kubernetes 1.36 deprecates it. Everybody who may write a Service can take the traffic to any address with it (CVE-2020-8554).',
    'Use a load-balancer controller or the Gateway API.',
  ],
  'spec.loadBalancerIP': [
    'It is deprecated since Kubernetes 1.24, and each cloud treats it differently.',
    "Use your cloud's annotation.",
  ],
  'spec.trafficDistribution: PreferClose': [
    'PreferSameZone is its newer name, since Kubernetes 1.34.',
    'Write PreferSameZone when all nodes are 1.34 or newer.',
  ],
  'annotation service.kubernetes.io/topology-aware-hints': [
    'It was replaced in Kubernetes 1.27.',
    'Use spec.trafficDistribution.',
  ],
  'annotation service.kubernetes.io/topology-mode': [
    'It may give no hints at all if the zones are uneven.',
    'Use spec.trafficDistribution: PreferSameZone, which always prefers the zone.',
  ],
  'annotation service.alpha.kubernetes.io/tolerate-unready-endpoints': [
    'Kubernetes no longer reads it.',
    'Use spec.publishNotReadyAddresses.',
  ],
}

export function oldFields({ services }: Pick<ClusterFacts, 'services'>): Finding[] {
  return Object.entries(advice).flatMap(([field, [why, todo]]): Finding[] => {
    const users = services.filter(({ fields }) => fields.includes(field)).map(({ path }) => path)
    if (users.length === 0) return []
    const what = `${counted(users.length, 'Service uses', 'Services use')} ${field}.`
    const [namespace, name] = (users[0] as string).split('/')
    const command = `kubectl -n ${namespace} edit service ${name}`
    return [{ level: 'note', what, ...examplesOf(users), why, todo, command }]
  })
}

export const clusterChecks: readonly Check<ClusterFacts>[] = [
  check('API server', ['server'], server),
  check('clock', ['clockAheadMs'], clock),
  check('certificates', ['certificates'], (facts) => certificates(facts, Date.now())),
  check('permissions', ['rights'], rights),
  check('addresses in conflict', ['notServed'], claims),
  check('Services served in part', ['notServed'], servedInPart),
  check('skipped objects', ['skipped'], skippedObjects),
  check('Services without endpoints', ['services'], withoutEndpoints),
  check('EndpointSlices without a Service', ['slicesWithoutService'], slicesWithoutService),
  check('load balancers', ['services'], awaitingLoadBalancer),
  check('deprecated fields', ['services'], oldFields),
]
