import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { nftBackend } from '../backend.js'
import type { NftOptions } from '../options.js'
import { options } from './cases.js'

/** Runs nft, or fails with what it said. */
export function nft(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('nft', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`nft ${args.join(' ')}: ${stderr}`)
  return stdout
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
