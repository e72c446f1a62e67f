import { addressCases } from './addresses.js'
import { affinityCases } from './affinity.js'
import { badObjectCases } from './bad-objects.js'
import type { Case } from './case.js'
import { changeCases } from './changes.js'
import { clusterIpCases } from './cluster-ip.js'
import { dualStackCases } from './dual-stack.js'
import { endpointCases } from './endpoints.js'
import { hintCases } from './hints.js'
import { loadBalancerCases } from './load-balancers.js'
import { skippedServiceCases } from './skipped-services.js'
import { trafficPolicyCases } from './traffic-policies.js'
import { udpFlowCases } from './udp-flows.js'

/** Every case of the kit, in the order of the truth table. */
export const cases: readonly Case[] = [
  ...clusterIpCases,
  ...endpointCases,
  ...hintCases,
  ...trafficPolicyCases,
  ...addressCases,
  ...loadBalancerCases,
  ...affinityCases,
  ...dualStackCases,
  ...skippedServiceCases,
  ...changeCases,
  ...udpFlowCases,
  ...badObjectCases,
]
