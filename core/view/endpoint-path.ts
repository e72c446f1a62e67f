import { endpointPath } from '@kpng/api'
import { hashKey } from '../store/hash.js'
import type { EndpointRecord } from '../store/index.js'
import { addressesAndPorts } from './selection.js'

/** The path of an endpoint among others: its own path, or a longer one where that is taken. */
export function uniquePath(
  service: string,
  endpoint: EndpointRecord,
  isTaken: (path: string) => boolean,
  path = ownPath(service, endpoint),
): string {
  if (!isTaken(path)) return path
  const longer = `${path}:${hashKey(identityOf(endpoint))}`
  for (let count = 2; ; count++) {
    const candidate = count === 2 ? longer : `${longer}:${count}`
    if (!isTaken(candidate)) return candidate
  }
}

/**
 * A pod's endpoint is named after it. A pod with two address families has two endpoints: the IPv6 one says so, whether there
 * is an IPv4 one or not, so that a path never depends on what else exists. Endpoints without a pod are named by a hash.
 */
function ownPath(service: string, endpoint: EndpointRecord): string {
  const { podName, v4, v6 } = endpoint
  const name =
    podName === '' ? hashKey(identityOf(endpoint)) : v4.length === 0 && v6.length > 0 ? `${podName}:v6` : podName
  return endpointPath(service, name)
}

/** What makes an endpoint without a name the same one after its conditions changed. */
const identityOf = (endpoint: EndpointRecord): string => `${endpoint.hostname}|${addressesAndPorts(endpoint)}`
