import type { Store } from '@kpng/core/store'
import type { Command } from 'commander'
import type { Context, Flags } from '../context.js'

/** A word that a command line begins with: where the state comes from. */
export interface SourceCommand {
  readonly name: string
  readonly summary: string
  readonly example: string
  addFlags(command: Command): void
  /** Fills the store until the signal is aborted; rejects when it cannot even begin. */
  run(flags: Flags, store: Store, context: Context): Promise<void>
}
