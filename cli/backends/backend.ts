import type { Backend } from '@kpng/client'
import type { Command } from 'commander'
import type { Agent } from '../agent/flags.js'
import type { Context, Flags } from '../context.js'

/** A word that names the data plane for the view of one node. */
export interface BackendCommand {
  readonly name: string
  readonly summary: string
  /** Flags of two command lines for the help. */
  readonly examples: readonly [string, string]
  /** Runs with a node agent: health, metrics, tracing, a configuration file. */
  readonly agent?: Agent
  addFlags(command: Command): void
  create(flags: Flags, context: Context): Promise<Backend>
}
