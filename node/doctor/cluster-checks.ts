import type { Finding } from '@kpng/api'
import { collected, counted, examplesOf, found } from '@kpng/diagnose'
import type { ClusterFacts } from './cluster-facts.js'
import { type Check, check } from './finding.js'
import { certificates, clock, rights, server } from './server-checks.js'

// Services and EndpointSlices that do not do what their authors expect.

export function slicesWithoutService({
  slicesWithoutService: stray,
}: Pick<ClusterFacts, 'slicesWithoutService'>): Finding[] {
  if (stray.length === 0) return []
  const [namespace, name] = (stray[0] as string).split('/')
  const what = `${counted(stray.length, 'EndpointSlice belongs', 'EndpointSlices belong')} to no Service.`
  const command = `kubectl -n ${namespace} get endpointslice ${name} --show-labels`
  return [found('KPNG-C007', what, { ...examplesOf(stray), command })]
}

export function skippedObjects({ skipped }: Pick<ClusterFacts, 'skipped'>): Finding[] {
  if (skipped.size === 0) return []
  const what = `${counted(skipped.size, 'object is', 'objects are')} skipped, completely or in part.`
  const objects = [...skipped].map(([object, reasons]) => `${object}: ${reasons.join(' ')}`)
  return [found('KPNG-C008', what, examplesOf(objects))]
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
    return [found('KPNG-C009', what, { ...examplesOf(users), why, todo, command })]
  })
}

/** What is asked of Services, wherever they are from. */
export const serviceChecks: readonly Check<ClusterFacts>[] = [
  check('Services', ['diagnoses'], ({ diagnoses }) => collected(diagnoses)),
  // Without pods, the check above says less: that is said, too.
  check('selectors, pods and target ports', ['pods'], () => []),
  check('skipped objects', ['skipped'], skippedObjects),
  check('EndpointSlices without a Service', ['slicesWithoutService'], slicesWithoutService),
  check('deprecated fields', ['services'], oldFields),
]

export const clusterChecks: readonly Check<ClusterFacts>[] = [
  check('API server', ['server'], server),
  check('clock', ['clockAheadMs'], clock),
  check('certificates', ['certificates'], (facts) => certificates(facts, Date.now())),
  check('permissions', ['rights'], rights),
  ...serviceChecks,
]
