import { type Family, families, KpngError, type Log, messageOf } from '@kpng/api'
import { hasCapability, isMissingProgram, outputOf, rightsAdvice } from '@kpng/linux'
import { inEnglish } from './restore.js'

// iptables comes in two flavours with separate rules: nft and legacy. Rules in both work, but in an order that surprises people, so
// kpng uses the one that the rest of the node uses.

export type Flavour = 'nft' | 'legacy'

/** The programs without `-save` and `-restore`, by family. */
export type Programs = Readonly<Record<Family, string>>

export const programsOf = (flavour?: Flavour): Programs => {
  const suffix = flavour === undefined ? '' : `-${flavour}`
  return { IPv4: `iptables${suffix}`, IPv6: `ip6tables${suffix}` }
}

const limitMs = 60_000

/** Everything that a program shows, in all tables. */
export const save = (program: string): Promise<string> => outputOf(`${program}-save`, [], { limitMs, env: inEnglish() })

/** What iptables-save prints in each flavour that is installed, both families together. */
export async function savedByFlavour(): Promise<Map<Flavour, string>> {
  const found = new Map<Flavour, string>()
  for (const flavour of ['nft', 'legacy'] as const) {
    const texts: string[] = []
    for (const family of families) {
      // A flavour that the kernel lacks has no rules.
      const text = await save(programsOf(flavour)[family]).catch((error) => (isMissingProgram(error) ? undefined : ''))
      if (text !== undefined) texts.push(text)
    }
    if (texts.length > 0) found.set(flavour, texts.join('\n'))
  }
  return found
}

export interface Choice {
  /** Undefined: `iptables` as it is in PATH. */
  readonly flavour: Flavour | undefined
  readonly why: string
  /** Both have rules of others. */
  readonly isMixed: boolean
}

/** Chains that the kubelet makes so that others find its flavour. */
const hints = /^:KUBE-(?:IPTABLES-HINT|KUBELET-CANARY) /m

/** As kube-proxy's image chooses: where the kubelet is, then where we were, then where more rules are, then the node's default. */
export function chooseFlavour(saved: ReadonlyMap<Flavour, string>, ownerChain: string): Choice {
  const all = [...saved]
  const rules = (text: string) => text.split('\n').filter((line) => /^-A (?!KUBE-|KPNG-)/.test(line)).length
  const isMixed = all.length > 1 && all.every(([, text]) => rules(text) > 0)
  const choice = (found: [Flavour, string] | undefined, why: string): Choice | undefined =>
    found && { flavour: found[0], why, isMixed }
  const [most, least] = [...all].sort(([, a], [, b]) => rules(b) - rules(a))
  return (
    choice(
      all.find(([, text]) => hints.test(text)),
      'the kubelet uses it',
    ) ??
    choice(
      all.find(([, text]) => text.includes(`:${ownerChain} `)),
      'kpng used it before',
    ) ??
    choice(most && rules(most[1]) > (least ? rules(least[1]) : 0) ? most : undefined, 'it has more rules') ?? {
      flavour: undefined,
      why: "it is the node's default",
      isMixed,
    }
  )
}

/** Whether a program works here; the error says why not. */
export async function checkProgram(program: string): Promise<void> {
  try {
    await outputOf(program, ['-w', '5', '-t', 'nat', '-S', 'PREROUTING'], { limitMs, env: inEnglish() })
  } catch (error) {
    if (isMissingProgram(error)) throw error
    const advice = hasCapability('CAP_NET_ADMIN') ? 'Load its kernel modules.' : rightsAdvice('CAP_NET_ADMIN')
    throw new KpngError('unsupported', `${program} cannot be used: ${messageOf(error)}. ${advice}`, { cause: error })
  }
}

/** `iptables v1.8.9 (nf_tables)`; `--random-fully` came with 1.6.2. */
export async function describe(program: string): Promise<{ version: string; flavour: Flavour; randomFully: boolean }> {
  const text = await outputOf(program, ['-V'], { limitMs, env: inEnglish() })
  const [, major = 0, minor = 0, patch = 0] = /v(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? []
  return {
    version: text.trim(),
    flavour: text.includes('nf_tables') ? 'nft' : 'legacy',
    randomFully: Number(major) * 10_000 + Number(minor) * 100 + Number(patch) >= 10_602,
  }
}

/** Chooses the programs, and tells the log. */
export async function choosePrograms(wanted: Flavour | 'auto', ownerChain: string, log: Log): Promise<Programs> {
  if (wanted !== 'auto') return programsOf(wanted)
  const { flavour, why, isMixed } = chooseFlavour(await savedByFlavour(), ownerChain)
  if (isMixed) {
    log.warn(
      'Both iptables-nft and iptables-legacy have rules on this node. Packets pass both, which is hard to follow; move all programs to one',
      { chosen: flavour ?? 'default', why },
    )
  }
  log.detail(1, 'Chose a flavour of iptables', { flavour: flavour ?? 'default', why })
  return programsOf(flavour)
}

/** Whether IPv6 is served: if ip6tables works, unless the options say otherwise. */
export async function servesIpv6(
  programs: Programs,
  { ipv6, log }: { readonly ipv6: boolean | 'auto'; readonly log: Log },
): Promise<boolean> {
  if (ipv6 === false) return false
  try {
    await checkProgram(programs.IPv6)
    return true
  } catch (error) {
    if (ipv6 === true) throw error
    log.warn('ip6tables cannot be used: Services are served in IPv4 only', { error: messageOf(error) })
    return false
  }
}
