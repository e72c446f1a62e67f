import { hostname } from 'node:os'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { KpngError, type Log, parseDuration } from '@kpng/api'
import { parseAddresses } from './address.js'
import { textLog } from './log.js'
import type { WatchStatus } from './source-status.js'
import { readTlsFiles, type TlsFiles } from './tls.js'

/** How to reach a kpng server, and for which node. Everything has a default. */
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

interface ProgramFlag {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** What the value is, for the help; missing: the flag has none. */
  readonly value?: string
  readonly summary: string
}

const flags = {
  api: {
    type: 'string',
    value: 'addresses',
    summary: `kpng API; host:port,… (default: ${defaultApi})`,
  },
  'node-name': { type: 'string', value: 'name', summary: 'this node (default: NODE_NAME or the host name)' },
  'tls-key': { type: 'string', value: 'file', summary: 'TLS key, PEM' },
  'tls-crt': { type: 'string', value: 'file', summary: 'TLS certificate, PEM' },
  'tls-ca': { type: 'string', value: 'file', summary: 'certificate of the CA, PEM' },
  'error-delay': { type: 'string', value: 'duration', summary: 'pause after an error (default: 1s)' },
  'max-msg-size': { type: 'string', value: 'bytes', summary: 'largest message accepted (default: 4194304)' },
  once: { type: 'boolean', summary: 'exit after the first call of the handler' },
  v: { type: 'string', short: 'v', value: 'level', summary: 'verbosity of the log, 0 to 4 (default: 0)' },
  help: { type: 'boolean', short: 'h', summary: 'print this help' },
} as const satisfies Record<string, ProgramFlag>

/** What a command line gives. */
export interface ArgumentOptions extends ClientOptions {
  /** `--api`, as it was written. Default: `127.0.0.1:12090`. */
  readonly api: string
  /** `--node-name`. Default: NODE_NAME of the environment, else the host's name. */
  readonly nodeName: string
  /** Lines for people on standard error; `-v` says how many. */
  readonly log: Log
  /** `--once`. Default false. */
  readonly once: boolean
}

/**
 * The options that `run()` takes from the command line of your program when you give it none. `--help` prints the flags and exits with
 * code 0; a mistake prints a sentence and exits with code 2, or 1 if a file cannot be read. With `args` it never exits, and throws a `KpngError` instead.
 */
export function optionsFromArguments(args?: readonly string[]): ArgumentOptions {
  if (args) return parseOptions(args)
  const program = basename(process.argv[1] ?? 'program')
  const words = process.argv.slice(2)
  if (words.includes('--help') || words.includes('-h')) {
    process.stdout.write(programHelp(program))
    process.exit(0)
  }
  try {
    return parseOptions(words)
  } catch (error) {
    if (!(error instanceof KpngError)) throw error
    const hint = error.code === 'usage' ? `Run ${program} with --help to see its flags.\n` : ''
    process.stderr.write(`${program}: ${error.message}\n${hint}`)
    process.exit(error.code === 'usage' ? 2 : 1)
  }
}

function parseOptions(args: readonly string[]): ArgumentOptions {
  const values = parse(args)
  const tls = withoutUndefined({ keyFile: values['tls-key'], certFile: values['tls-crt'], caFile: values['tls-ca'] })
  const withTls = Object.keys(tls).length > 0
  const api = values.api ?? defaultApi
  // Checked here, where the mistake can still be answered with the flags.
  parseAddresses(api)
  if (withTls) readTlsFiles(tls)
  return {
    api,
    nodeName: values['node-name'] ?? defaultNodeName(),
    ...(withTls ? { tls } : {}),
    ...(values['error-delay'] ? { errorDelayMs: milliseconds('--error-delay', values['error-delay']) } : {}),
    ...(values['max-msg-size'] ? { maxMessageBytes: wholeNumber('--max-msg-size', values['max-msg-size']) } : {}),
    // `-v=2` is how klog's flags are written; parseArgs leaves the "=" in the value of a short flag.
    log: textLog({ verbosity: values.v ? wholeNumber('-v', values.v.replace(/^=/, '')) : 0 }),
    once: values.once ?? false,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags, strict: true }).values
  } catch (error) {
    // The first sentence of Node's message names the flag. The rest is about positional arguments, which there are none of.
    throw new KpngError('usage', `${(error as Error).message.split('. ')[0]?.replace(/\.$/, '')}.`, { cause: error })
  }
}

/** Where the summaries begin, so that they fit into 80 columns. */
const summaryColumn = 28

function programHelp(program: string): string {
  const lines = Object.entries<ProgramFlag>(flags).map(([name, { short, value, summary }]) => {
    const term = `  ${short ? `-${short}, ` : ''}--${name}${value ? ` <${value}>` : ''}`
    return `${term.padEnd(summaryColumn)}  ${summary}`
  })
  return `Usage: ${program} [flags]\n\nFlags:\n${lines.join('\n')}\n`
}

const withoutUndefined = (files: { [name: string]: string | undefined }): TlsFiles =>
  Object.fromEntries(Object.entries(files).filter(([, value]) => value !== undefined))

export function wholeNumber(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new KpngError('usage', `${flag} takes a whole number, not "${text}".`)
  return Number(text)
}

/** A duration as Go programs write it: `1s`, `500ms`, `1m30s`. */
export function milliseconds(flag: string, text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 0) return ms
  throw new KpngError('usage', `${flag} takes a duration such as 1s, 500ms or 1m30s, not "${text}".`)
}
