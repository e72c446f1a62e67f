import { KpngError, messageOf } from '@kpng/api'
import { hasCapability, rightsAdvice } from '@kpng/linux'
import { type Chains, chainsFound, chainsIn, jumpsTo, type Table, tables } from './iptables-rules.js'
import type { RunProgram } from './program.js'

/** What `iptables -S` prints of a table, or of one chain. If it cannot be read, the error says what to do. */
export async function listRules(run: RunProgram, program: string, table: Table, chain?: string): Promise<string> {
  try {
    return await run(program, ['-w', '-t', table, '-S', ...(chain === undefined ? [] : [chain])])
  } catch (error) {
    if (error instanceof KpngError && error.code === 'unsupported') throw error
    const advice = hasCapability('CAP_NET_ADMIN') ? '' : ` ${rightsAdvice('CAP_NET_ADMIN')}`
    throw new KpngError('unsupported', `${program} cannot read the table ${table}: ${messageOf(error)}.${advice}`, {
      cause: error,
    })
  }
}

/**
 * Takes chains of ours and the jumps to them away, and nothing else.
 * @param program iptables or ip6tables
 * @param only the chains of one proxy; undefined: those of every kpng
 */
export async function removeRules(run: RunProgram, program: string, only?: Chains): Promise<void> {
  for (const table of tables) {
    const listed = await listRules(run, program, table).catch((error: unknown) => {
      // What the kernel does not have holds nothing of ours.
      if (/not supported|table does not exist/i.test(messageOf(error))) return ''
      throw error
    })
    for (const chains of only ? [only] : chainsFound(listed)) await removeChains(run, program, table, listed, chains)
  }
}

async function removeChains(run: RunProgram, program: string, table: Table, listed: string, chains: Chains) {
  const lines = listed.split('\n')
  const present = chainsIn(chains)[table].filter((chain) => lines.includes(`-N ${chain}`))
  for (const { from, to, match } of jumpsTo(chains).filter(
    (jump) => jump.table === table && present.includes(jump.to),
  )) {
    const count = lines.filter((line) => line.startsWith(`-A ${from} `) && line.endsWith(` -j ${to}`)).length
    for (let left = count; left > 0; left--) await run(program, ['-w', '-t', table, '-D', from, ...match, '-j', to])
  }
  for (const chain of present) await run(program, ['-w', '-t', table, '-F', chain])
  for (const chain of present) await run(program, ['-w', '-t', table, '-X', chain])
}
