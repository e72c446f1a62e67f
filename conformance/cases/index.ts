import { addressCases } from './addresses.js'
import { affinityCases } from './affinity.js'
import { badObjectCases } from './bad-objects.js'
import type { Case } from './case.js'
import { clusterIpCases } from './cluster-ip.js'
import { dualStackCases } from './dual-stack.js'
import { endpointChangeCases, openConnectionCases } from './endpoint-changes.js'
import { endpointCases } from './endpoints.js'
import { faultCases } from './faults.js'
import { foreignRuleCases } from './foreign-rules.js'
import { hintCases } from './hints.js'
import { loadBalancerCases } from './load-balancers.js'
import { nodePortFlagCases } from './node-port-flags.js'
import { oddSliceCases } from './odd-slices.js'
import { pathMtuCases } from './path-mtu.js'
import { sctpCases } from './sctp.js'
import { serviceChangeCases } from './service-changes.js'
import { severalNodeCases } from './several-nodes.js'
import { skippedServiceCases } from './skipped-services.js'
import { specialisedCases } from './specialised.js'
import { trafficPolicyCases } from './traffic-policies.js'
import { udpFlowCases } from './udp-flows.js'
import { wholeAddressCases } from './whole-address.js'

/** Every case of the kit, in the order of the truth table. */
export const cases: readonly Case[] = [
  ...clusterIpCases,
  ...endpointCases,
  ...oddSliceCases,
  ...hintCases,
  ...trafficPolicyCases,
  ...addressCases,
  ...loadBalancerCases,
  ...sctpCases,
  ...affinityCases,
  ...dualStackCases,
  ...skippedServiceCases,
  ...endpointChangeCases,
  ...serviceChangeCases,
  ...openConnectionCases,
  ...udpFlowCases,
  ...wholeAddressCases,
  ...specialisedCases,
  ...pathMtuCases,
  ...foreignRuleCases,
  ...faultCases,
  ...nodePortFlagCases,
  ...severalNodeCases,
  ...badObjectCases,
]
