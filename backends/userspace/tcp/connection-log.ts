import type { Log } from '@kpng/api'
import type { Moved } from './byte-mover.js'
import type { Carrier } from './carrier.js'

// The lines of one connection at -v 4, in the words that people know from kube-proxy.

/** Says that copying begins; what is returned says that it ended. */
export function logCopying(log: Log, addresses: ReturnType<Carrier['addresses']>): (moved: Moved) => void {
  const { client: clientAddress, endpoint: endpointAddress } = addresses
  const toBackend = {
    direction: 'to backend',
    sourceRemoteAddress: clientAddress,
    destinationRemoteAddress: endpointAddress,
  }
  const fromBackend = {
    direction: 'from backend',
    sourceRemoteAddress: endpointAddress,
    destinationRemoteAddress: clientAddress,
  }
  log.detail(4, 'Creating proxy between remote and local addresses', {
    inRemoteAddress: clientAddress,
    inLocalAddress: addresses.entrance,
    outLocalAddress: addresses.source,
    outRemoteAddress: endpointAddress,
  })
  log.detail(4, 'Copying remote address bytes', toBackend)
  log.detail(4, 'Copying remote address bytes', fromBackend)
  return ({ toEndpoint, toClient }) => {
    log.detail(4, 'Copied remote address bytes', { bytes: toEndpoint, ...toBackend })
    log.detail(4, 'Copied remote address bytes', { bytes: toClient, ...fromBackend })
  }
}
