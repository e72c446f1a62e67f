import type { LiveService } from '@kpng/api'

/** A row of the stream: a Service that is well, except for what is given. */
export function liveRow(key: string, given: Partial<LiveService> = {}): LiveService {
  const [namespace = '', name = ''] = key.split('/')
  return {
    ...{
      namespace,
      name,
      type: 'ClusterIP',
      clusterIps: ['10.96.0.10'],
      externalIps: [],
      ports: ['80/tcp'],
      endpoints: 2,
    },
    ...{ internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster', sessionAffinity: false },
    ...{ verdict: 'serving', headline: `${key} is served on this node.`, reason: '', findings: [] },
    ...{ hints: false, sourceRanges: false, changedBy: 0 },
    ...given,
  }
}
