import { KpngError, type Log, messageOf } from '@kpng/api'
import { findIptables } from './iptables.js'
import { findIpvs } from './ipvs.js'
import { findNftables } from './nftables.js'
import { type RunProgram, runProgram } from './program.js'
import { commandLine, type FindLeftovers, type Removal, type Sight, type Surroundings } from './removal.js'

// The order matters: a set of ipvs cannot be deleted while a chain uses it.
const modes: ReadonlyMap<string, FindLeftovers> = new Map([
  ['iptables', findIptables],
  ['nftables', findNftables],
  ['ipvs', findIpvs],
])

export interface LeftoverOptions {
  readonly log: Log
  /** Receives the commands instead of running them: nothing is removed. */
  readonly print?: ((text: string) => void) | undefined
  readonly run?: RunProgram
}

/** Something of kube-proxy that is still there. */
export interface Leftover extends Pick<Removal, 'what'> {
  /** The mode of kube-proxy that makes it. */
  readonly mode: string
  readonly fields: NonNullable<Removal['fields']>
}

/**
 * Removes what kube-proxy left in this network namespace, in all of its modes, and nothing that belongs to others. Connections stay open:
 * the kernel's connection table is not touched. One failure does not stop the rest; all failures are reported at the end.
 */
export async function removeKubeProxyLeftovers({ log, print, run = runProgram }: LeftoverOptions): Promise<void> {
  const failures: string[] = []
  const failed = (message: string) => void failures.push(message)
  const sights = new Map<string, Sight>()
  let found = 0
  for (const [mode, find] of modes) {
    const sight: Sight = { seen: false, missing: [] }
    sights.set(mode, sight)
    for (const removal of await find({ run, log, sight, failed })) {
      found++
      if (print) print(commandLine(removal))
      else await remove(removal, { mode, run, log, failed })
    }
  }
  if (failures.length > 0) throw new KpngError('unavailable', `${failures.join('; ')}${rightsHint(failures)}`)
  conclude(found, sights, log)
}

/** What kube-proxy left in this network namespace, and what could not be checked. Changes nothing. */
export async function findKubeProxyLeftovers({ log, run = runProgram }: Omit<LeftoverOptions, 'print'>): Promise<{
  readonly found: readonly Leftover[]
  readonly failures: readonly string[]
}> {
  const failures: string[] = []
  const found: Leftover[] = []
  for (const [mode, find] of modes) {
    const surroundings = {
      run,
      log,
      sight: { seen: false, missing: [] },
      failed: (text: string) => failures.push(text),
    }
    for (const { what, fields = {} } of await find(surroundings)) found.push({ mode, what, fields })
  }
  return { found, failures }
}

async function remove(
  removal: Removal,
  { mode, run, log, failed }: Pick<Surroundings, 'run' | 'log' | 'failed'> & { readonly mode: string },
): Promise<void> {
  try {
    const done = await run(removal.program, removal.args, removal.input)
    if (done === undefined) failed(`${removal.program} is not installed or not in PATH`)
    else log.info(`Removed kube-proxy's ${removal.what}`, { mode, ...removal.fields })
    log.detail(2, 'Ran', { command: commandLine(removal) })
  } catch (error) {
    failed(messageOf(error))
  }
}

const rightsHint = (failures: readonly string[]): string =>
  failures.some((message) => /not permitted|permission denied|must be root/i.test(message))
    ? '. Run kpng as root or with the capability CAP_NET_ADMIN.'
    : ''

/** If a program is missing, its part was not checked, and the last line must not say that nothing is there. */
function conclude(found: number, sights: ReadonlyMap<string, Sight>, log: Log): void {
  const blind = [...sights].filter(([, { missing }]) => missing.length > 0)
  const missing = blind.flatMap(([, sight]) => sight.missing)
  if ([...sights.values()].every(({ seen }) => !seen)) {
    throw new KpngError(
      'unavailable',
      `Cannot look for rules of kube-proxy: ${missing.join(', ')} are not installed or not in PATH. Install the ones that kube-proxy's mode uses, or run \`kube-proxy --cleanup\`.`,
    )
  }
  if (blind.length > 0) {
    const unseen = Object.fromEntries(blind.map(([mode, sight]) => [mode, sight.missing.join(',')]))
    const what = found === 0 ? 'Found nothing of kube-proxy, but not everything' : 'Not everything'
    log.warn(`${what} was checked: these programs are not installed`, unseen)
  } else if (found === 0) log.info('Found nothing of kube-proxy')
}
