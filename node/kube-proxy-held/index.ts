import { readFile } from 'node:fs/promises'
import { type Family, families, KpngError, messageOf } from '@kpng/api'
import type { FrontendAddress, HeldFrontend } from '@kpng/client'
import { isMissingProgram, outputOf } from '@kpng/linux'
import { ownerOf, parseIptables } from './iptables.js'
import { parseNftables } from './nftables.js'
import { heldIn, type KubeProxyRules } from './rules.js'

/** kube-proxy's rules on this machine, as of when they were read. */
export interface KubeProxyHeld {
  readonly mode: 'nftables' | 'iptables'
  /** What else somebody should know about them, as sentences. */
  readonly notes: readonly string[]
  held(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
}

/** Runs a program and returns what it printed; undefined if it is not installed. Rejects if it fails. */
export type RunProgram = (program: string, args: readonly string[]) => Promise<string | undefined>

type ByFamily = Partial<Record<Family, KubeProxyRules>>

/** Reads kube-proxy's rules in the mode in which they are there. Rejects with a KpngError if there are none, or they cannot be read. */
export async function readKubeProxy(run: RunProgram = runProgram): Promise<KubeProxyHeld> {
  const nftables = await readNftables(run)
  const { rules: iptables, instead } = await readIptables(run)
  const hasNftables = Object.keys(nftables).length > 0
  const hasIptables = Object.keys(iptables).length > 0
  if (!hasNftables && !hasIptables) throw nothingToCompare(instead)
  const mode = hasNftables && (!hasIptables || entrancesOf(nftables) >= entrancesOf(iptables)) ? 'nftables' : 'iptables'
  const rules = mode === 'nftables' ? nftables : iptables
  return {
    mode,
    notes: hasNftables && hasIptables ? [bothModes(mode)] : [],
    held: async (frontend) => {
      const ofFamily = rules[frontend.family]
      return ofFamily && heldIn(ofFamily, frontend)
    },
  }
}

const entrancesOf = (rules: ByFamily): number =>
  Object.values(rules).reduce((sum, { entrances, otherwise }) => sum + entrances.size + otherwise.size, 0)

const bothModes = (mode: string): string =>
  `There are rules of kube-proxy in nftables and in iptables. Those of mode ${mode} were read, since they serve more. The others may be leftovers of another mode, and they still count: see kpng cleanup --kube-proxy --dry-run.`

async function readNftables(run: RunProgram): Promise<ByFamily> {
  const found: ByFamily = {}
  for (const [family, name] of Object.entries({ IPv4: 'ip', IPv6: 'ip6' } as const)) {
    const listed = await run('nft', ['-j', 'list', 'table', name, 'kube-proxy']).catch((error) => {
      if (/No such file or directory/.test(messageOf(error))) return undefined
      throw cannotRead(error)
    })
    if (listed !== undefined) found[family as Family] = parseNftables(listed)
  }
  return found
}

/** kube-proxy's image chooses a variant of iptables by itself, which may not be the node's default: both are read. */
async function readIptables(run: RunProgram): Promise<{ rules: ByFamily; instead: 'none' | 'ipvs' | 'kpng' }> {
  const rules: ByFamily = {}
  let instead: 'none' | 'ipvs' | 'kpng' = 'none'
  for (const family of families) {
    const program = family === 'IPv4' ? 'iptables' : 'ip6tables'
    let isThere = false
    for (const variant of [`${program}-nft`, `${program}-legacy`, program]) {
      if (variant === program && isThere) break
      const saved = await run(`${variant}-save`, []).catch((error) => {
        // A kernel without the legacy tables, or without the family.
        if (/not supported|Table does not exist|does not exist|Protocol/i.test(messageOf(error))) return ''
        throw cannotRead(error)
      })
      if (saved === undefined) continue
      isThere = true
      const owner = ownerOf(saved)
      if (owner === 'kube-proxy') rules[family] ??= parseIptables(saved, await recentClients(saved))
      else if (owner !== 'none') instead = owner
    }
  }
  return { rules, instead }
}

/** The kernel shows the clients that the module `recent` remembers, one file per list. */
async function recentClients(saved: string): Promise<(list: string) => readonly string[]> {
  const lists = new Set([...saved.matchAll(/--set --name (\S+)/g)].map(([, name]) => name as string))
  const clients = new Map<string, string[]>()
  for (const list of lists) {
    const text = await readFile(`/proc/net/xt_recent/${list}`, 'utf8').catch(() => '')
    clients.set(
      list,
      [...text.matchAll(/^src=(\S+)/gm)].map(([, client]) => client as string),
    )
  }
  return (list) => clients.get(list) ?? []
}

const runProgram: RunProgram = async (program, args) => {
  try {
    // The messages of programs are matched above, so they must be in English.
    return await outputOf(program, args, { limitMs: 60_000, env: { ...process.env, LC_ALL: 'C' } })
  } catch (error) {
    if (isMissingProgram(error)) return undefined
    throw error
  }
}

function cannotRead(error: unknown): KpngError {
  const isForbidden = /permission denied|not permitted|must be root/i.test(messageOf(error))
  const next = isForbidden ? ' Ask as root.' : ''
  return new KpngError('refused', `kube-proxy's rules cannot be read: ${messageOf(error)}${next}`, { cause: error })
}

function nothingToCompare(instead: 'none' | 'ipvs' | 'kpng'): KpngError {
  if (instead === 'ipvs')
    return new KpngError(
      'unsupported',
      'kube-proxy runs in mode ipvs here. Only its modes nftables and iptables can be compared.',
    )
  const kpng = instead === 'kpng' ? ' The KUBE- chains in iptables are those of kpng: ask with --held kpng.' : ''
  return new KpngError(
    'unavailable',
    `There are no rules of kube-proxy on this machine: no nftables table kube-proxy, and no chain KUBE-SERVICES of it in iptables.${kpng} Ask on a node where kube-proxy runs, in its network namespace.`,
  )
}
