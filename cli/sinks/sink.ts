import type { Store } from '@kpng/core/store'
import type { Command } from 'commander'
import type { Context, Flags } from '../context.js'

/** A word that says where the state goes. */
export interface SinkCommand {
  readonly name: string
  readonly summary: string
  /** Flags of two command lines for the help. */
  readonly examples: readonly [string, string]
  addFlags(command: Command): void
  /** Serves the store until the signal is aborted; rejects if it cannot. */
  run(flags: Flags, store: Store, context: Context): Promise<void>
}
