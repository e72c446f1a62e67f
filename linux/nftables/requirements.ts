import { KpngError, type Log } from '@kpng/api'
import { hasIpv6 } from '../interfaces.js'
import type { Libc } from '../libc.js'
import type { Expression } from './expression.js'
import type { TableFamily } from './family.js'
import { random } from './field.js'
import type { Hook, Ruleset } from './ruleset.js'
import { NftSocket } from './socket.js'
import { isInvalid, isLocal, isProtocol, masquerade, reject, reset, rule } from './statement.js'
import { type TableAt, writeChain, writeRule, writeTable, writeTableWhole } from './table-messages.js'

const checkName = 'kpng-check'

/** Throws if the kernel does not accept a ruleset; the message says what is missing. Changes nothing. */
export async function checkRuleset(libc: Libc, families: readonly TableFamily[], ruleset: Ruleset): Promise<void> {
  const socket = new NftSocket(libc)
  try {
    for (const family of families) {
      const problem = await socket.whyRefused((buffer) =>
        writeTableWhole(buffer, family, { ...ruleset, tableName: checkName }),
      )
      if (problem !== undefined) throw await missingFeature(socket, family, problem)
    }
  } finally {
    socket.close()
  }
}

const checkTable = (family: TableFamily): TableAt => ({ family, name: checkName })

interface Probe {
  /** The kernel option. */
  readonly option: string
  readonly hook?: Hook
  readonly expressions?: readonly Expression[]
}

/** The kernel options that the rules need, each with the shortest chain that needs it. */
const probes = (family: TableFamily): readonly Probe[] => [
  { option: 'CONFIG_NF_TABLES' },
  { option: 'CONFIG_NFT_NAT', hook: { type: 'nat', name: 'prerouting', priority: -100 } },
  { option: 'CONFIG_NFT_CT', expressions: isInvalid.expressions },
  {
    option: 'CONFIG_NFT_MASQ',
    hook: { type: 'nat', name: 'postrouting', priority: 100 },
    expressions: masquerade.expressions,
  },
  { option: 'CONFIG_NFT_REJECT', expressions: rule(isProtocol('tcp'), reset).expressions },
  {
    option: 'CONFIG_NFT_REJECT in prerouting, which kernels have since 5.9',
    hook: { type: 'filter', name: 'prerouting', priority: 0 },
    expressions: reject(family).expressions,
  },
  { option: 'CONFIG_NFT_NUMGEN', expressions: random(2).load(0) },
  {
    option: family === 'ip' ? 'CONFIG_NFT_FIB_IPV4' : 'CONFIG_NFT_FIB_IPV6',
    hook: { type: 'filter', name: 'input', priority: 0 },
    expressions: isLocal('daddr').expressions,
  },
]

async function missingFeature(socket: NftSocket, family: TableFamily, problem: string): Promise<KpngError> {
  for (const { option, hook, expressions } of probes(family)) {
    const refused = await socket.whyRefused((buffer) => {
      writeTable(buffer, checkTable(family))
      writeChain(buffer, checkTable(family), 'probe', hook)
      if (expressions) writeRule(buffer, checkTable(family), 'probe', expressions)
    })
    if (refused === undefined) continue
    return new KpngError(
      'unsupported',
      `The kernel lacks ${option} (family ${family}). Load its module, or use another kernel.`,
    )
  }
  return new KpngError(
    'unsupported',
    `The kernel does not accept kpng's rules for family ${family}: ${problem}. Update the kernel, or use another backend.`,
  )
}

/** The families to serve. `ipv6`: `auto` if the host has it. */
export function usableFamilies(ipv6: boolean | 'auto', log: Log, hostHasIpv6 = hasIpv6()): TableFamily[] {
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
