import { KpngError, type Log, messageOf } from '@kpng/api'
import { findIptables } from './iptables.js'
import { findIpvs } from './ipvs.js'
import { findNftables } from './nftables.js'
import { type RunProgram, runProgram } from './program.js'
import { commandLine, type FindLeftovers, type Surroundings } from './removal.js'

// In this order: the sets of ipvs cannot go before the chains that use them.
const modes: ReadonlyMap<string, FindLeftovers> = new Map([
  ['iptables', findIptables],
  ['nftables', findNftables],
  ['ipvs', findIpvs],
])

export interface LeftoverOptions {
  readonly log: Log
  /** Says what would be removed, with the commands, and removes nothing. */
  readonly print?: ((text: string) => void) | undefined
  readonly run?: RunProgram
}

/**
 * Takes away what kube-proxy left in this network namespace, of all its modes, and nothing of anybody else. Connections go on: the kernel's
 * connection table is not touched. What fails does not stop the rest, and is told at the end.
 */
export async function removeKubeProxyLeftovers({ log, print, run = runProgram }: LeftoverOptions): Promise<void> {
  const failures: string[] = []
  const surroundings: Surroundings = { run, log, failed: (message) => failures.push(message) }
  let found = 0
  for (const [mode, find] of modes) {
    for (const removal of await find(surroundings)) {
      found++
      if (print) {
        print(commandLine(removal))
        continue
      }
      try {
        const done = await run(removal.program, removal.args, removal.input)
        if (done === undefined) failures.push(`${removal.program} is not installed or not in PATH`)
        else log.info(`Removed kube-proxy's ${removal.what}`, { mode, ...removal.fields })
        log.detail(2, 'Ran', { command: commandLine(removal) })
      } catch (error) {
        failures.push(messageOf(error))
      }
    }
  }
  if (found === 0 && failures.length === 0) log.info('Found nothing of kube-proxy to remove')
  if (failures.length > 0) {
    throw new KpngError('unavailable', failures.join('; '))
  }
}
