import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { KpngError, type Log } from '@kpng/api'
import { textLog } from './log.js'
import type { WatchStatus } from './source-status.js'
import type { TlsFiles } from './tls.js'

/** How to reach a kpng server, and as which node. Everything has a default. */
export interface ClientOptions {
  /**
   * Addresses of servers that serve the same state, tried in order: `127.0.0.1:12090`, `[::1]:12090`,
   * `unix:///run/kpng/kpng.sock`. Default: `127.0.0.1:12090`.
   */
  readonly api?: string | readonly string[]
  /** The node whose view is wanted. Default: NODE_NAME of the environment, else the host's name. */
  readonly nodeName?: string
  /** For a server that uses TLS. Default: no TLS. */
  readonly tls?: TlsFiles
  /** How long to wait after an error before the next try. Default 1,000. */
  readonly errorDelayMs?: number
  /** The largest message that is accepted. Default 4 MiB, as in gRPC. */
  readonly maxMessageBytes?: number
  /** Kept up to date with whether there is a connection and when the server last sent something. Default: nobody is told. */
  readonly status?: WatchStatus
  /** Default: lines for people on standard error. */
  readonly log?: Log
  /** Ends it. Default: SIGINT and SIGTERM do. */
  readonly signal?: AbortSignal
}

export const defaultApi = '127.0.0.1:12090'

export const defaultNodeName = (): string => process.env.NODE_NAME || hostname()

const flags = {
  api: { type: 'string' },
  'node-name': { type: 'string' },
  'tls-key': { type: 'string' },
  'tls-crt': { type: 'string' },
  'tls-ca': { type: 'string' },
  'error-delay': { type: 'string' },
  'max-msg-size': { type: 'string' },
  once: { type: 'boolean' },
  v: { type: 'string', short: 'v' },
} as const

/** What a command line gives. */
export interface ArgumentOptions extends ClientOptions {
  readonly api: string
  readonly nodeName: string
  readonly log: Log
  readonly once: boolean
}

/** The options that `run()` takes from the command line of your program when you give it none. */
export function optionsFromArguments(args: readonly string[] = process.argv.slice(2)): ArgumentOptions {
  const values = parse(args)
  const tls = { keyFile: values['tls-key'], certFile: values['tls-crt'], caFile: values['tls-ca'] }
  return {
    api: values.api ?? defaultApi,
    nodeName: values['node-name'] ?? defaultNodeName(),
    ...(tls.keyFile || tls.certFile || tls.caFile ? { tls: withoutUndefined(tls) } : {}),
    ...(values['error-delay'] ? { errorDelayMs: milliseconds('--error-delay', values['error-delay']) } : {}),
    ...(values['max-msg-size'] ? { maxMessageBytes: wholeNumber('--max-msg-size', values['max-msg-size']) } : {}),
    log: textLog({ verbosity: values.v ? wholeNumber('-v', values.v) : 0 }),
    once: values.once ?? false,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags, strict: true }).values
  } catch (error) {
    throw new KpngError(
      'usage',
      `${(error as Error).message.split('. ')[0]}. The flags are ${Object.keys(flags)
        .map((name) => `--${name}`)
        .join(', ')}.`,
    )
  }
}

const withoutUndefined = (files: { [name: string]: string | undefined }): TlsFiles =>
  Object.fromEntries(Object.entries(files).filter(([, value]) => value !== undefined))

export function wholeNumber(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new KpngError('usage', `${flag} takes a whole number, not "${text}".`)
  return Number(text)
}

const unitsMs: { [unit: string]: number } = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** A duration as Go programs write it: `1s`, `500ms`, `1m30s`. */
export function milliseconds(flag: string, text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw new KpngError('usage', `${flag} takes a duration such as 1s, 500ms or 1m30s, not "${text}".`)
  }
  return parts.reduce((sum, [, value, unit]) => sum + Number(value) * (unitsMs[unit as string] as number), 0)
}
