import { KpngError, parseIp } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import type { Client } from '@kpng/dataplane'

/** What somebody wants to know about. */
export type Question =
  /** Without a port: everything of the Service. */
  | { readonly kind: 'service'; readonly service: string; readonly port?: number; readonly protocol?: Protocol }
  /** Without a port: everything at the address. */
  | { readonly kind: 'address'; readonly ip: string; readonly port?: number; readonly protocol?: Protocol }
  | { readonly kind: 'node-port'; readonly port: number; readonly protocol?: Protocol }

const defaultPorts: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 }

/**
 * Reads a question: `web`, `shop/web`, `service/web`, `10.96.0.10`, `10.96.0.10:53/udp`, `[fd00::1]:80`, `30080`, `30080/udp`, a name in DNS
 * (`web.shop.svc`, `web.shop:8080`), or a URL (`http://web.shop/path`).
 * @param namespace of a Service without one
 */
export function parseQuestion(text: string, namespace: string): Question {
  const [, scheme, authority] = /^([a-z]+):\/\/(?:[^/@]*@)?([^/?#]+)/i.exec(text) ?? []
  if (scheme !== undefined && authority !== undefined) {
    const port = defaultPorts[scheme.toLowerCase()]
    const hasPort = /:\d+$/.test(authority.replace(/^\[.*?\]/, ''))
    return parseQuestion(hasPort || port === undefined ? authority : `${authority}:${port}`, namespace)
  }
  const { rest, protocol } = withoutProtocol(text)
  const ofProtocol = protocol === undefined ? {} : { protocol }
  if (/^\d+$/.test(rest)) return { kind: 'node-port', port: portIn(rest, text), ...ofProtocol }
  const [, bracketed, plain = rest, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(rest) ?? []
  const ip = parseIp(bracketed ?? plain)?.text
  if (ip !== undefined) {
    return { kind: 'address', ip, ...(port === undefined ? {} : { port: portIn(port, text) }), ...ofProtocol }
  }
  const [, inNamespace, name, ofName] =
    /^(?:(?:svc|service|services)\/)?(?:([a-z0-9-]+)\/)?([a-z0-9][a-z0-9.-]*)(?::(\d+))?$/.exec(rest) ?? []
  if (name === undefined) {
    throw new KpngError(
      'usage',
      `"${text}" is not a Service, an address or a node port. Write web, shop/web, web.shop.svc, http://web.shop, 10.96.0.10:80, [fd00::1]:53/udp or 30080.`,
    )
  }
  const at = ofName === undefined ? {} : { port: portIn(ofName, text) }
  return {
    kind: 'service',
    service: inNamespace ? `${inNamespace}/${name}` : inDns(name, namespace),
    ...at,
    ...ofProtocol,
  }
}

/** `web.shop`, `web.shop.svc.cluster.local`, and `web-0.web.shop.svc` of a pod. The name of a Service has no dots. */
function inDns(name: string, namespace: string): string {
  const labels = name.replace(/\.$/, '').split('.')
  const svc = labels.indexOf('svc')
  const own = svc >= 2 ? labels.slice(svc - 2, svc) : labels.slice(0, 2)
  return own.length === 2 ? `${own[1]}/${own[0]}` : `${namespace}/${name}`
}

export function questionText(question: Question): string {
  if (question.kind === 'service')
    return question.port === undefined ? question.service : `${question.service} port ${question.port}`
  const protocol = question.protocol === undefined ? '' : `/${question.protocol}`
  if (question.kind === 'node-port') return `node port ${question.port}${protocol}`
  if (question.port === undefined) return question.ip
  return `${question.ip.includes(':') ? `[${question.ip}]` : question.ip}:${question.port}${protocol}`
}

/** Reads who asks: `pod`, `node`, `outside`, or an address. */
export function parseClient(text: string, clientOf: (ip: string) => Client): Client {
  if (text === 'pod' || text === 'node' || text === 'outside') return { kind: text }
  const ip = parseIp(text)
  if (ip) return clientOf(ip.text)
  throw new KpngError('usage', `--from takes pod, node, outside or an IP address, not "${text}".`)
}

/** `shop/udp` is a Service: a protocol follows a port or an address. */
function withoutProtocol(text: string): { rest: string; protocol: Protocol | undefined } {
  const [, rest = text, protocol] = /^(.*)\/(tcp|udp|sctp)$/i.exec(text) ?? []
  if (!/^\d+$|:\d+$/.test(rest) && !parseIp(rest)) return { rest: text, protocol: undefined }
  return { rest, protocol: protocol?.toLowerCase() as Protocol | undefined }
}

function portIn(text: string, question: string): number {
  const port = Number(text)
  if (port > 0 && port < 65_536) return port
  throw new KpngError('usage', `"${text}" in "${question}" is not a port. A port is 1 to 65535.`)
}
