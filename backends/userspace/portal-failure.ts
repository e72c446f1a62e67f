import { hostPort, messageOf } from '@kpng/api'
import { frontendId } from '@kpng/dataplane'
import type { Portal } from './portal.js'

/** Why a portal could not be opened, and what to do about it. */
export function failureSentence(error: unknown, portal: Portal): string {
  const { code, address: ip, port } = error as NodeJS.ErrnoException & { address?: string; port?: number }
  // A proxy socket may listen elsewhere than at the portal; without a port it was to get any.
  const address = ip === undefined ? frontendId(portal) : `${port ? hostPort(ip, port) : ip}/${portal.protocol}`
  switch (code) {
    case 'EADDRINUSE':
      return `${address} is in use by another program; stop it, or give the service another port.`
    case 'EADDRNOTAVAIL':
      return `${address} is not an address of this machine; add it to an interface, or choose a capture that does.`
    case 'EACCES':
      return `${address} may not be opened; ports below 1024 need root, CAP_NET_BIND_SERVICE or a lower net.ipv4.ip_unprivileged_port_start.`
    case 'EAFNOSUPPORT':
      return `${address}: this machine has no ${portal.family}.`
    default:
      return messageOf(error)
  }
}
