import type { Shape } from './shape.js'

/** Not a number, or a text, or a flag: only where a map or a list must stand. What is inside is checked where it is read. */
const map = { fields: {}, others: 'allowed' } as const
const maps = { list: map } as const
const values = { list: 'any' } as const

/**
 * Where the objects that kpng reads have maps and lists. A text in such a place is a slip of the indentation, and what belongs
 * there is lost with it; so it is said with line and column, and the last good state stays.
 */
export const manifestShapes = {
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
