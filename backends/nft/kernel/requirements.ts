import { existsSync, readFileSync } from 'node:fs'
import { KpngError, type Log, messageOf, silentLog } from '@kpng/api'
import { hasCapability, rightsAdvice } from '@kpng/linux'
import { type Settings, settingsOf } from '../options.js'
import type { TableFamily } from '../rules/family.js'
import { skeletonText } from '../rules/skeleton.js'
import { NftCommand } from './nft-command.js'

/** The first nft version that supports `typeof` and maps to an address and a port. */
const lowestNftVersion = [0, 9, 4]

/** Throws if this process may not change nftables here; the message says why. */
export function checkRights(): void {
  if (process.platform !== 'linux') {
    throw new KpngError(
      'unsupported',
      `nftables is a part of Linux, and this is ${process.platform}. Use the userspace backend here.`,
    )
  }
  // If the capabilities are unknown, the kernel will refuse the first request.
  if (hasCapability('CAP_NET_ADMIN') === false) {
    throw new KpngError('unsupported', `kpng may not change the network here. ${rightsAdvice('CAP_NET_ADMIN')}`)
  }
}

/** Throws if this machine lacks something; the message says what. */
export async function checkRequirements(
  nft: NftCommand,
  families: readonly TableFamily[],
  settings: Settings,
): Promise<void> {
  checkRights()
  // In parallel: each check is a process, and the node waits for its rules.
  const check = (family: TableFamily) => nft.check(skeletonText(family, { ...settings, tableName: 'kpng-check' }))
  const [version, ...problems] = await Promise.all([nft.version(), ...families.map(check)])
  if (isOlder(version, lowestNftVersion)) {
    throw new KpngError(
      'unsupported',
      `nft ${version} is too old. Install ${lowestNftVersion.join('.')} or newer; 1.0.7 or newer is best.`,
    )
  }
  for (const [index, family] of families.entries()) {
    const problem = problems[index]
    if (problem !== undefined) throw await missingFeature(nft, family, version, problem)
  }
}

/** Why this machine cannot hold kpng's rules, as a sentence; undefined if it can. Changes nothing. */
export async function whyUnusable(): Promise<string | undefined> {
  const settings = settingsOf()
  try {
    await checkRequirements(new NftCommand(settings.nftCommand), usableFamilies(settings, silentLog), settings)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function isOlder(version: string, lowest: readonly number[]): boolean {
  const parts = version.split('.').map(Number)
  if (parts.some(Number.isNaN)) return false
  for (const [index, number] of lowest.entries()) {
    const own = parts[index] ?? 0
    if (own !== number) return own < number
  }
  return false
}

/** The kernel options that the ruleset needs, each with the shortest text that needs it. */
const probes = (family: TableFamily): readonly (readonly [option: string, chain: string])[] => [
  ['CONFIG_NF_TABLES', ''],
  ['CONFIG_NFT_NAT', 'type nat hook prerouting priority -100;'],
  ['CONFIG_NFT_CT', 'ct state new accept'],
  ['CONFIG_NFT_MASQ', 'type nat hook postrouting priority 100; masquerade fully-random'],
  ['CONFIG_NFT_REJECT', 'reject with tcp reset'],
  ['CONFIG_NFT_REJECT in prerouting, which kernels have since 5.9', 'type filter hook prerouting priority 0; reject'],
  ['CONFIG_NFT_NUMGEN', 'numgen random mod 2 == 0 accept'],
  [
    family === 'ip' ? 'CONFIG_NFT_FIB_IPV4' : 'CONFIG_NFT_FIB_IPV6',
    'type filter hook input priority 0; fib daddr type local accept',
  ],
]

async function missingFeature(
  nft: NftCommand,
  family: TableFamily,
  version: string,
  problem: string,
): Promise<KpngError> {
  for (const [option, chain] of probes(family)) {
    const text = `table ${family} kpng-check {\n  chain probe {\n    ${chain.replaceAll('; ', ';\n    ')}\n  }\n}\n`
    if ((await nft.check(text)) === undefined) continue
    return new KpngError(
      'unsupported',
      `The kernel lacks ${option} (family ${family}). Load its module, or use another kernel.`,
    )
  }
  return new KpngError(
    'unsupported',
    `The kernel, or nft ${version}, does not accept kpng's rules for family ${family}: ${problem}. Update nft, or use another backend.`,
  )
}

/** The families to serve. */
export function usableFamilies({ ipv6 }: Settings, log: Log, hostHasIpv6 = hasIpv6()): TableFamily[] {
  if (ipv6 === false) return ['ip']
  if (hostHasIpv6) return ['ip', 'ip6']
  if (ipv6 === true) {
    throw new KpngError(
      'unsupported',
      'IPv6 is required, but this host has none. Enable it (net.ipv6.conf.all.disable_ipv6=0), or serve IPv4 only.',
    )
  }
  log.info('This host has no IPv6; only IPv4 is served')
  return ['ip']
}

function hasIpv6(): boolean {
  return existsSync('/proc/net/if_inet6') && readOr('/proc/sys/net/ipv6/conf/all/disable_ipv6', '1').trim() === '0'
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}
