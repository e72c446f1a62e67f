import { createHmac } from 'node:crypto'
import { parseIp } from '@kpng/api'

/** Names that every cluster or every kpng has, and that say nothing about anybody. */
const publicNames = new Set([
  ...['default', 'kube-system', 'kube-public', 'kube-node-lease', 'kubernetes', 'localhost', 'cluster.local'],
  ...['kpng', 'kube-proxy', 'nftables', 'iptables', 'ipvs', 'userspace'],
])

/** Fields of JSON answers and labels of metrics that hold a name, or several with slashes. */
const nameFields = 'namespace|name|service|hostname|node|nodeName|pod|host'

/** Where names stand in JSON, metrics, log lines, comments of rules, and descriptions of a cluster. */
const namePatterns: readonly RegExp[] = [
  new RegExp(`"(?:${nameFields})":\\s*"([^"]+)"`, 'g'),
  new RegExp(`\\b(?:${nameFields}|object)="(?:[A-Z]\\w+ )?([^"]+)"`, 'g'),
  new RegExp(`\\b(?:${nameFields})=([^\\s",}]+)`, 'g'),
  // Only with a namespace: the word after "Service" may be any word of a sentence.
  /\b(?:Service|EndpointSlice|Pod)s? ([a-z0-9][\w.-]*\/[\w.-]+)/g,
  /comment "?([a-z0-9][\w.-]*\/[\w.-]+)/g,
  /\bcontext \\?"([^"\\]+)/g,
  /\bhttps?:\/\/([\w.-]+)/g,
  /\/home\/([\w.-]+)/g,
]

/** The names that texts mention in known places. */
export function namesIn(texts: Iterable<string>): Set<string> {
  const found: string[] = []
  for (const text of texts) {
    for (const pattern of namePatterns) for (const [, name = ''] of text.matchAll(pattern)) found.push(name)
  }
  return privateNames(found)
}

/** The names that should be hidden. A name of parts (`shop/web`) is several names. */
export const privateNames = (names: Iterable<string>): Set<string> =>
  new Set([...names].flatMap((name) => name.split(/[/:|,@\s]/)).filter(isPrivate))

/** Numbers, addresses and single letters are not names of objects. */
const isPrivate = (name: string): boolean =>
  /^[a-z0-9][a-z0-9._-]+$/i.test(name) && /[a-z]/i.test(name) && !publicNames.has(name) && !parseIp(name)

/** Replaces names and IP addresses by hashes: the same one each time with the same salt, so that they can still be followed. */
export function nameHasher(names: ReadonlySet<string>, salt: string): (text: string) => string {
  const hash = (text: string) => createHmac('sha256', salt).update(text).digest('hex').slice(0, 10)
  const isName = (word: string) => names.has(word) || isPodOf(word, names)
  const hashedWord = (word: string) => {
    if (isName(word)) return `name-${hash(word)}`
    // Alone, or the two ends of a range.
    const parts = word.split('-')
    if (parts.every((part) => /^\d+\.\d+\.\d+\.\d+$/.test(part)))
      return parts.map((part) => hashedIp(part, hash)).join('-')
    // Names in DNS, such as web.shop.svc.cluster.local.
    return word.replace(/[^.]+/g, (part) => (isName(part) ? `name-${hash(part)}` : part))
  }
  return (text) =>
    text
      .replace(/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?/gi, hashedWord)
      .replace(/(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])/gi, (word) => hashedIp(word, hash))
}

/** Pods and slices are usually named after the Service: `web-7d9f5-x2k4q`. */
function isPodOf(word: string, names: ReadonlySet<string>): boolean {
  if (publicNames.has(word)) return false
  for (let end = word.indexOf('-'); end > 0; end = word.indexOf('-', end + 1)) {
    if (names.has(word.slice(0, end))) return true
  }
  return false
}

/** Addresses that every machine has stay. */
const publicIps = new Set(['0.0.0.0', '127.0.0.1', '255.255.255.255', '::', '::1'])

function hashedIp(word: string, hash: (text: string) => string): string {
  const ip = parseIp(word)
  return ip === undefined || publicIps.has(ip.text) ? word : `ip-${hash(ip.text)}`
}
