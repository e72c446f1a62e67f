import type { KpngError, Log } from '@kpng/api'
import type { SourceStatus } from '@kpng/client'
import type { Skips } from '@kpng/core/sources/skips'
import type { Store } from '@kpng/core/store'
import type { ResolvedSettings } from '@kpng/node'
import type { KubeRequests } from './agent/kube-requests.js'
import type { EventCounts } from './events.js'

/** The level of the log's details (`-v`); it may change while kpng runs. */
export interface Verbosity {
  get(): number
  set(level: number): void
}

/** What every command gets: where to say things, when to stop, which node this is. */
export interface Context {
  readonly log: Log
  readonly signal: AbortSignal
  readonly nodeName: string
  readonly events: EventCounts
  readonly version: string
  readonly verbosity: Verbosity
  /** Of backends that come with a node agent: what its flags and configuration file say. */
  readonly resolved: ResolvedSettings | undefined
  /** The API server, where the source is one. */
  readonly kube: KubeRequests | undefined
  /** How up to date the state is: the source writes it, the agents show it. */
  readonly source: SourceStatus
  /** What the state comes from, as text: an API server or a core. Missing: the state is on this machine. */
  readonly origin?: (() => Promise<string>) | undefined
  /** The state goes to a backend on this node and nowhere else: a source may leave out what only other nodes need. */
  readonly onlyThisNode?: boolean
  /** What the source fills, where there is one in this process. */
  readonly state?: { readonly store: Store; readonly skips: Skips }
  /** Ends the run from within, as a signal would; with a reason, as a failure. */
  stop(reason?: KpngError): void
}

/** The values of a command's flags, by their camel-case names. */
export type Flags = Readonly<Record<string, unknown>>

export const textFlag = (flags: Flags, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** A flag that Go programs write as `--flag`, `--flag=true` or `--flag=false`. */
export function booleanFlag(flags: Flags, name: string, fallback: boolean): boolean {
  const value = flags[name]
  if (value === undefined) return fallback
  return value !== 'false' && value !== false
}

/** A flag that takes several values, with commas. */
export const listFlag = (flags: Flags, name: string): string[] =>
  (textFlag(flags, name) ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** `{ [name]: value }`, or nothing when there is no value: for options that may be left out. */
export const given = <Name extends string, T>(name: Name, value: T | undefined): { [key in Name]?: T } =>
  (value === undefined ? {} : { [name]: value }) as { [key in Name]?: T }
