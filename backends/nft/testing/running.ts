import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { loadLibc } from '@kpng/linux'
import { type ElementMap, type Elements, type SetPath, shapeAt, splitSetPath } from '@kpng/linux/nftables'
import { readSet } from '../../../linux/nftables/set-elements.js'
import { NftSocket } from '../../../linux/nftables/socket.js'
import { nftBackend } from '../backend.js'
import { type NftOptions, settingsOf } from '../options.js'
import { nftRuleset } from '../rules/skeleton.js'
import { options } from './cases.js'

/** Runs nft, or fails with what it said. */
export function nft(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('nft', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`nft ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** What a set in this network namespace holds. */
export async function heldIn(path: SetPath): Promise<ElementMap> {
  const ruleset = nftRuleset(settingsOf())
  const socket = new NftSocket(await loadLibc())
  try {
    const at = { ...splitSetPath(path), table: ruleset.tableName, shape: shapeAt(ruleset, path) }
    return (await readSet(socket, at)).finish()
  } finally {
    socket.close()
  }
}

/** What all sets hold, without those that packets write. */
export async function heldElements(): Promise<Elements> {
  const elements: Elements = new Map()
  for (const [family, sets] of Object.entries(nftRuleset(settingsOf()).sets)) {
    for (const [name, { dynamic }] of sets) {
      const map = dynamic ? undefined : await heldIn(`${family} ${name}` as SetPath)
      if (map && map.size > 0) elements.set(`${family} ${name}` as SetPath, map)
    }
  }
  return elements
}

/** The backends that a test starts. A second start on the same tables is a restart: the first one is closed before. */
export class RunningBackends {
  readonly #running: ReturnType<typeof nftBackend>[] = []
  /** Why they asked for a full sync. */
  readonly reasons: string[] = []

  async start(given: NftOptions = {}): Promise<ReturnType<typeof nftBackend>> {
    await this.close()
    const backend = nftBackend({ ...options, log: silentLog, driftCheckIntervalMs: 20, ...given })
    this.#running.push(backend)
    await backend.setup({ requestFullSync: (reason) => this.reasons.push(reason) })
    return backend
  }

  /** The rules stay. */
  async close(): Promise<void> {
    for (const backend of this.#running) await backend.close()
  }

  async end(): Promise<void> {
    for (const backend of this.#running.splice(0)) await backend.cleanup()
    this.reasons.length = 0
  }
}
