import { createHmac } from 'node:crypto'
import { parseIp } from '@kpng/api'

/** Names that every cluster has, and that say nothing about anybody. */
const publicNames = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease', 'kubernetes', 'localhost'])

/** Fields of JSON answers and labels of metrics that hold a name, or several with slashes. */
const nameFields = 'namespace|name|service|hostname|node|nodeName|pod|host'

/** Where names stand in JSON, metrics, log lines, and comments of rules. */
const namePatterns: readonly RegExp[] = [
  new RegExp(`"(?:${nameFields})":\\s*"([^"]+)"`, 'g'),
  new RegExp(`\\b(?:${nameFields}|object)="(?:[A-Z]\\w+ )?([^"]+)"`, 'g'),
  new RegExp(`\\b(?:${nameFields})=([^\\s",}]+)`, 'g'),
  /\b(?:Service|EndpointSlice|Node|Pod|Namespace)s? ([a-z0-9][\w.-]*(?:\/[\w.-]+)?)/g,
  /comment "?([a-z0-9][\w.-]*\/[\w.-]+)/g,
]

/** The names that texts mention in known places. A name of parts (`shop/web`) is several names. */
export function namesIn(texts: Iterable<string>): Set<string> {
  const names = new Set<string>()
  for (const text of texts) {
    for (const pattern of namePatterns) {
      for (const [, found = ''] of text.matchAll(pattern)) {
        for (const name of found.split(/[/:|,\s]/)) if (isHidden(name)) names.add(name)
      }
    }
  }
  return names
}

/** Numbers, addresses and single letters are not names of objects. */
const isHidden = (name: string): boolean =>
  name.length > 1 &&
  /^[a-z0-9][a-z0-9.-]*$/.test(name) &&
  /[a-z]/.test(name) &&
  !publicNames.has(name) &&
  !parseIp(name)

/** Replaces names and IP addresses by hashes: the same one each time with the same salt, so that they can still be followed. */
export function nameHasher(names: ReadonlySet<string>, salt: string): (text: string) => string {
  const hash = (text: string) => createHmac('sha256', salt).update(text).digest('hex').slice(0, 10)
  return (text) =>
    text
      // Whole words: letters, digits, dots and dashes. A long word is looked up as a whole first, then by its parts.
      .replace(/[a-z0-9][a-z0-9.-]*[a-z0-9]/gi, (word) => hashedWord(word, names, hash))
      .replace(/(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])/gi, (word) => hashedIp(word, hash))
}

function hashedWord(word: string, names: ReadonlySet<string>, hash: (text: string) => string): string {
  if (names.has(word)) return `name-${hash(word)}`
  if (/^\d+\.\d+\.\d+\.\d+$/.test(word)) return hashedIp(word, hash)
  // host.example.com and port names behind a dot
  return word.includes('.') ? word.replace(/[^.]+/g, (part) => (names.has(part) ? `name-${hash(part)}` : part)) : word
}

/** Addresses that every machine has stay. */
const publicIps = new Set(['0.0.0.0', '127.0.0.1', '255.255.255.255', '::', '::1'])

function hashedIp(word: string, hash: (text: string) => string): string {
  const ip = parseIp(word)
  return ip === undefined || publicIps.has(ip.text) ? word : `ip-${hash(ip.text)}`
}
