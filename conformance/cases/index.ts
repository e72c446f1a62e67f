import { addressCases } from './addresses.js'
import { affinityCases } from './affinity.js'
import { badObjectCases } from './bad-objects.js'
import type { Case } from './case.js'
import { clusterIpCases } from './cluster-ip.js'
import { dualStackCases } from './dual-stack.js'
import { endpointChangeCases, openConnectionCases } from './endpoint-changes.js'
import { endpointCases } from './endpoints.js'
import { externalLocalCase } from './external-local.js'
import { externalPolicyCases } from './external-policy.js'
import { hintCases } from './hints.js'
import { internalPolicyCases } from './internal-policy.js'
import { loadBalancerChangeCases } from './load-balancer-changes.js'
import { loadBalancerCases } from './load-balancers.js'
import { oddSliceCases } from './odd-slices.js'
import { serviceChangeCases } from './service-changes.js'
import { skippedServiceCases } from './skipped-services.js'
import { specialisedCases } from './specialised.js'
import { udpFlowCases } from './udp-flows.js'
import { wholeAddressCases } from './whole-address.js'

/** Every case of the kit, in the order of the truth table. */
export const cases: readonly Case[] = [
  ...clusterIpCases,
  ...endpointCases,
  ...oddSliceCases,
  ...hintCases,
  ...internalPolicyCases,
  ...externalPolicyCases,
  externalLocalCase,
  ...addressCases,
  ...loadBalancerCases,
  ...affinityCases,
  ...dualStackCases,
  ...skippedServiceCases,
  ...endpointChangeCases,
  ...serviceChangeCases,
  ...loadBalancerChangeCases,
  ...openConnectionCases,
  ...udpFlowCases,
  ...wholeAddressCases,
  ...specialisedCases,
  ...badObjectCases,
]
