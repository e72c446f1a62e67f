import { BlockList, isIP } from 'node:net'
import type { ClusterConfig } from './config.js'
import { checkProxyUrl } from './server-url.js'

/**
 * The proxy on the way to the API server: the cluster's `proxy-url`, else what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say, read
 * as Go programs read them (so that what works for kubectl works here).
 */
export function proxyOf(cluster: ClusterConfig, env: NodeJS.ProcessEnv): URL | undefined {
  if (cluster.proxyUrl) {
    return checkProxyUrl(cluster.proxyUrl, `proxy-url beside ${cluster.serverField}`)
  }
  const target = new URL(cluster.server)
  const names = target.protocol === 'https:' ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy']
  const name = names.find((candidate) => env[candidate])
  if (!name || isBypassed(target, env.NO_PROXY || env.no_proxy || '')) return undefined
  const value = env[name] ?? ''
  return checkProxyUrl(value.includes('://') ? value : `http://${value}`, `environment variable ${name}`)
}

function isBypassed(target: URL, noProxy: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  if (host === 'localhost' || host === '::1' || /^127\./.test(host)) return true
  return noProxy
    .split(',')
    .map((rule) => rule.trim().toLowerCase())
    .some((rule) => rule !== '' && matches(rule, host, port))
}

function matches(rule: string, host: string, port: string): boolean {
  if (rule === '*') return true
  if (rule.includes('/')) return inCidr(rule, host)
  const [, name = rule, rulePort] = /^(.*?)(?::(\d+))?$/.exec(isIP(rule) ? '' : rule) ?? []
  const bare = (name || rule).replace(/^\[|\]$/g, '').replace(/^\*?\./, '')
  if (rulePort && rulePort !== port) return false
  // `.example.com` is for the names below it, `example.com` also for itself; as in Go.
  return host.endsWith(`.${bare}`) || (host === bare && !/^\*?\./.test(rule))
}

function inCidr(cidr: string, host: string): boolean {
  const [network = '', bits = ''] = cidr.split('/')
  const family = isIP(network)
  if (!family || isIP(host) !== family || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128))
    return false
  const list = new BlockList()
  list.addSubnet(network, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}
