import { KpngError, type Log, type ServiceAnswer } from '@kpng/api'
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

/** What every command gets: the log, the signal to stop, the name of the node. */
export interface Context {
  readonly log: Log
  readonly signal: AbortSignal
  readonly nodeName: string
  readonly events: EventCounts
  readonly version: string
  readonly verbosity: Verbosity
  /** Of backends with a node agent: the settings from its flags and configuration file. */
  readonly resolved: ResolvedSettings | undefined
  /** The API server, if it is the source. */
  readonly kube: KubeRequests | undefined
  /** How up to date the state is: the source writes it, the agents show it. */
  readonly source: SourceStatus
  /** What the state comes from, as text: an API server or a core. Missing: the state is on this machine. */
  readonly origin?: (() => Promise<string>) | undefined
  /** The state goes to a backend on this node and nowhere else: a source may leave out what only other nodes need. */
  readonly onlyThisNode?: boolean
  /** What the source fills, if the source is in this process. */
  readonly state?: { readonly store: Store; readonly skips: Skips }
  /** Asks the core that serves this node about a Service, if the state comes from one. */
  readonly askCore?: (service: string) => Promise<ServiceAnswer>
  /** Ends the run from within, as a signal would; with a reason, as a failure. */
  stop(reason?: KpngError): void
}

/** The values of a command's flags, by their camel-case names. */
export type Flags = Readonly<Record<string, unknown>>

/** Makes the context of a run from the flags that every command has. */
export type MakeContext = (flags: Flags) => Promise<Context>

export const textFlag = (flags: Flags, name: string): string | undefined => {
  const value = flags[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

export const booleanFlag = (flags: Flags, name: string, fallback: boolean): boolean =>
  (flags[name] as boolean | undefined) ?? fallback

/** Adds the name of the flag to an error about its value. */
export async function checked<T>(flag: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof KpngError) throw new KpngError(error.code, `${flag}: ${error.message}`, { cause: error })
    throw error
  }
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
