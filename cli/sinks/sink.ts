import type { Store } from '@kpng/core/store'
import type { Command } from 'commander'
import type { Context, Flags } from '../context.js'

/** A word that says where the state goes. */
export interface SinkCommand {
  readonly name: string
  readonly summary: string
  readonly example: string
  addFlags(command: Command): void
  /** Serves the store until the signal is aborted; rejects when it cannot. `ready` is called once it is in place. */
  run(flags: Flags, store: Store, context: Context, ready: () => void): Promise<void>
}
