import { setTimeout as pause } from 'node:timers/promises'
import { type Family, families, familyOf, KpngError, type Log, messageOf, parseIp } from '@kpng/api'
import { frontendId } from '@kpng/dataplane'
import type { Portal } from '../portal.js'
import { AddressRecord } from './address-record.js'
import type { Capture } from './capture.js'
import { addArguments, defaultInterface, deleteArguments, showArguments } from './netsh-arguments.js'
import { ownHosts } from './none.js'
import { type RunProgram, runProgram } from './program.js'

export interface NetshOptions {
  readonly log: Log
  /** The interface that service addresses are added to. Default "vEthernet (HNS Internal NIC)". */
  readonly interfaceName?: string
  /**
   * A file that remembers which addresses were added, so that `cleanup` finds them after a crash and never deletes one that
   * was there before. Default: only this process remembers. `defaultStateFile()` is where commands keep it.
   */
  readonly stateFile?: string
  /** How long an added address may take to become usable. Default 10,000. */
  readonly usableTimeoutMs?: number
  /** How often to look. Default 500. */
  readonly pollMs?: number
  readonly run?: RunProgram
}

/** Windows: adds each service address to an interface, and listens there. Node ports listen on all interfaces. */
export function netshCapture(options: NetshOptions): Capture {
  const { log, interfaceName = defaultInterface, usableTimeoutMs = 10_000, pollMs = 500, run = runProgram } = options
  const added = new AddressRecord(options.stateFile, log)
  /** Which portals need an address: several ports of a service share one, and it goes with the last of them. */
  const users = new Map<string, Set<string>>()
  /** Addresses that portals asked for since the last full steering, also in vain: those that are wanted. */
  const asked = new Set<string>()

  const isUsable = async (ip: string, family: Family): Promise<boolean> => {
    // The words around the addresses are in the language of the system; the addresses are not.
    const shown = await run('netsh', showArguments(family, interfaceName))
    return shown.split(/[\s,;()]+/).some((word) => parseIp(word.replace(/\/\d+$/, ''))?.text === ip)
  }
  const ensure = async (ip: string, family: Family) => {
    if (await isUsable(ip, family)) return
    await run('netsh', addArguments(family, interfaceName, ip))
    added.add(ip, interfaceName)
    const deadline = Date.now() + usableTimeoutMs
    while (!(await isUsable(ip, family))) {
      if (Date.now() >= deadline) {
        throw new KpngError(
          'unavailable',
          `The address ${ip} was added to the interface "${interfaceName}" but is not usable after ${usableTimeoutMs / 1000} s; look at it with: netsh interface ${family.toLowerCase()} show address`,
        )
      }
      await pause(pollMs)
    }
  }
  const remove = async (ip: string) => {
    const addedTo = added.interfaceOf(ip)
    if (addedTo === undefined) return
    await run('netsh', deleteArguments(familyOf(ip), addedTo, ip))
    added.remove(ip)
  }

  return {
    name: 'netsh',
    listensOnPortals: true,
    families,
    async setup() {
      await run('netsh', showArguments('IPv4', interfaceName)).catch((error: unknown) => {
        if (error instanceof KpngError && error.code === 'unsupported') throw error
        throw new KpngError(
          'unsupported',
          `netsh does not know the interface "${interfaceName}"; name the one for service addresses with --forwarder-interface: ${messageOf(error)}`,
          { cause: error },
        )
      })
    },
    hosts: ownHosts,
    async allocate(portal) {
      const { kind, address: ip, family, port } = portal
      if (kind === 'nodePort') return port
      asked.add(ip)
      await ensure(ip, family)
      if (added.has(ip)) {
        log.detail(3, 'Added ip address to forwarder interface for service', {
          servicePortPortalName: frontendId(portal),
        })
      }
      const ids = users.get(ip) ?? new Set()
      users.set(ip, ids.add(frontendId(portal)))
      return port
    },
    async release(portal: Portal) {
      const ids = users.get(portal.address)
      ids?.delete(frontendId(portal))
      if (ids?.size !== 0) return
      users.delete(portal.address)
      await remove(portal.address)
    },
    /** Takes away what nobody wants: addresses of services that went while no kpng ran, and what could not be deleted before. */
    async steer({ extent }) {
      if (extent === 'changes') return
      const unwanted = added.all().filter((ip) => !users.has(ip) && !asked.has(ip))
      asked.clear()
      for (const ip of unwanted) {
        await remove(ip).catch((error: unknown) =>
          log.warn('An address that no service has any more cannot be deleted; it is tried again', {
            address: ip,
            error: messageOf(error),
          }),
        )
      }
    },
    async cleanup() {
      for (const ip of added.all()) await remove(ip)
      users.clear()
    },
  }
}
