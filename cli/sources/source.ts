import type { Command } from 'commander'
import type { Context, Flags } from '../context.js'

/** The first word of a command line: where the state comes from. */
export interface SourceCommand {
  readonly name: string
  readonly summary: string
  /** A command line up to the sink. */
  readonly example: string
  addFlags(command: Command): void
  /**
   * Checks its flags and files, then begins to fill the store. Rejects if it cannot begin. `ended` settles when the signal is aborted,
   * or when the source fails later.
   */
  start(
    flags: Flags,
    state: NonNullable<Context['state']>,
    context: Context,
  ): Promise<{ readonly ended: Promise<void> }>
}
