import type { IncomingMessage } from 'node:http'
import { parseIp } from './ip.js'

// A web page that somebody on this machine looks at can send requests to kpng's ports. Its browser says where the page is from, and a
// page cannot forge that: `Origin` and `Sec-Fetch-Site` if it is another site, and `Host` if the page's own name was made to resolve to
// this machine (DNS rebinding). Programs send neither of the first two.

/**
 * Why a request may not be answered because of the name that it asks for; undefined if it may. Addresses are always right: a page can be
 * from there only if it was served by this machine. So are requests without a Host, which no browser sends.
 * @param names in lower case; one that starts with a dot stands for every name that ends with it
 */
export function hostProblem({ headers }: IncomingMessage, names: readonly string[]): string | undefined {
  if (headers.host === undefined) return undefined
  const host = headers.host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
  if (parseIp(host.replace(/^\[(.*)\]$/, '$1'))) return undefined
  const isKnown = ['localhost', ...names].some((name) => (name.startsWith('.') ? host.endsWith(name) : host === name))
  return isKnown
    ? undefined
    : `The host name ${JSON.stringify(headers.host.slice(0, 253))} is not known to this server.`
}

/**
 * Why a request may not be answered because a page of another site sent it; undefined if it may. Following a link to a page that only
 * shows something is allowed: the other site does not see it.
 * @param sensitive whether it has an effect beyond its answer
 */
export function originProblem({ method, headers }: IncomingMessage, sensitive: boolean): string | undefined {
  const isLink = headers['sec-fetch-mode'] === 'navigate' && (method === 'GET' || method === 'HEAD')
  if (isLink && !sensitive) return undefined
  const site = headers['sec-fetch-site']
  const { origin } = headers
  const isForeign =
    (site !== undefined && site !== 'same-origin' && site !== 'none') ||
    (origin !== undefined && origin.replace(/^https?:\/\//, '').toLowerCase() !== headers.host?.toLowerCase())
  return isForeign ? 'Pages of other sites may not ask this server.' : undefined
}
