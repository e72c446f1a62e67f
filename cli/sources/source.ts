import type { Command } from 'commander'
import type { Context, Flags } from '../context.js'

/** A word that a command line begins with: where the state comes from. */
export interface SourceCommand {
  readonly name: string
  readonly summary: string
  readonly example: string
  addFlags(command: Command): void
  /** Fills the store until the signal is aborted, and reports what it cannot use; rejects when it cannot even begin. */
  run(flags: Flags, state: NonNullable<Context['state']>, context: Context): Promise<void>
}
