import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'
import { hostProblem, originProblem } from '@kpng/api/node'

/** Why a request is not answered; undefined if it is. */
export type Refusal = (request: IncomingMessage) => string | undefined

/**
 * For the health pages. Load balancers and probes may be set to send any Host, and a node must not be drained because of it. The pages
 * say no more than whether the node works, and change nothing.
 */
export const refuseOtherSites: Refusal = (request) => originProblem(request, false)

/** For the metrics port, where settings, profiles and the verbosity are, and for the dashboard. */
export function refuseUnknownHosts(nodeName?: string, names = knownNames(nodeName)): Refusal {
  return (request) => {
    const problem = hostProblem(request, names)
    if (problem) return `${problem} Use an IP address, or name it in KPNG_ALLOWED_HOSTS.`
    const isSensitive = request.method !== 'GET' || (request.url ?? '').startsWith('/debug/')
    return originProblem(request, isSensitive)
  }
}

export interface NameSources {
  readonly hostname: string
  /** In the form of /etc/resolv.conf. */
  readonly resolvConf: string
  /** KPNG_ALLOWED_HOSTS: names with commas between them. One that starts with a dot stands for every name below it. */
  readonly allowed: string
}

/** Names by which Prometheus and others reach this process: of the node, in its search domains, and of Services of the cluster. */
export function knownNames(nodeName = '', from: NameSources = nameSources()): readonly string[] {
  const domains = [...from.resolvConf.matchAll(/^search[ \t]+(.*)$/gm)].flatMap(([, list = '']) => list.split(/\s+/))
  const own = [from.hostname, nodeName].filter((name) => name !== '')
  const services = ['svc.cluster.local', ...domains.filter((domain) => domain.startsWith('svc.'))]
  return [
    ...own.flatMap((name) => [name, ...domains.map((domain) => `${name}.${domain}`)]),
    '.svc',
    ...services.map((domain) => `.${domain}`),
    ...from.allowed.split(','),
  ]
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name.replace(/^\./, '') !== '' && !name.endsWith('.'))
}

function nameSources(): NameSources {
  let resolvConf = ''
  try {
    resolvConf = readFileSync('/etc/resolv.conf', 'utf8')
  } catch {
    // Without it, names in search domains are not known.
  }
  return { hostname: hostname(), resolvConf, allowed: process.env.KPNG_ALLOWED_HOSTS ?? '' }
}
