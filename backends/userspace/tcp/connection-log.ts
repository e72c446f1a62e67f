import type { Socket } from 'node:net'
import { hostPort, type Log } from '@kpng/api'
import type { Moved } from './byte-mover.js'

// The lines of one connection at -v 4, in the words that people know from kube-proxy.

export const remoteOf = ({ remoteAddress, remotePort }: Socket): string =>
  hostPort(remoteAddress ?? 'unknown', remotePort ?? 0)

export const localOf = ({ localAddress, localPort }: Socket): string =>
  hostPort(localAddress ?? 'unknown', localPort ?? 0)

/** Says that copying begins; what is returned says that it ended. By then the sockets have forgotten their addresses. */
export function logCopying(log: Log, client: Socket, endpoint: Socket): (moved: Moved) => void {
  const [clientAddress, endpointAddress] = [remoteOf(client), remoteOf(endpoint)]
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
    inLocalAddress: localOf(client),
    outLocalAddress: localOf(endpoint),
    outRemoteAddress: endpointAddress,
  })
  log.detail(4, 'Copying remote address bytes', toBackend)
  log.detail(4, 'Copying remote address bytes', fromBackend)
  return ({ toEndpoint, toClient }) => {
    log.detail(4, 'Copied remote address bytes', { bytes: toEndpoint, ...toBackend })
    log.detail(4, 'Copied remote address bytes', { bytes: toClient, ...fromBackend })
  }
}
