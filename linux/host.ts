import { accessSync, constants } from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, join } from 'node:path'
import { KpngError, type Log } from '@kpng/api'
import { type Capability, checkNetworkRights, hasCapability, rightsAdvice } from './capabilities.js'
import { deleteFlows } from './conntrack.js'
import { reachableAddresses } from './interfaces.js'
import { lockName } from './name-lock.js'

/** This machine, as the skeleton of the backends asks it (`Host` of @kpng/dataplane). */
export const linuxHost = {
  check: checkNeeds,
  lock: (name: string, log: Log) => lockName(name, `kpng (pid ${process.pid}) on ${hostname()}`, { log }),
  addresses: () => reachableAddresses(),
  deleteFlows,
} as const

/** Throws if this process lacks a right or a program; the message says which. */
export function checkNeeds(needs: { rights: readonly string[]; programs: readonly string[] }, what: string): void {
  for (const right of needs.rights) {
    if (right === 'CAP_NET_ADMIN') checkNetworkRights(what)
    else if (hasCapability(right as Capability) === false) {
      throw new KpngError('unsupported', `kpng may not use ${what}. ${rightsAdvice(right as Capability)}`)
    }
  }
  const missing = needs.programs.find((program) => !isInstalled(program))
  if (missing !== undefined) {
    throw new KpngError('unsupported', `${what} needs the program ${missing}, which is not in PATH. Install it.`)
  }
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
