import type { Flow } from '@kpng/dataplane'

/** IPVS sends a flow elsewhere without marking it as redirected in connection tracking: only who answers tells. */
export const asRedirected = (flow: Flow): Flow => ({
  ...flow,
  isRedirected: flow.isRedirected || flow.answeredBy !== flow.destination,
})
