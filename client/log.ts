import type { Log, LogFields } from '@kpng/api'

const quoted = (value: unknown): string => {
  if (value instanceof Error) return JSON.stringify(value.message)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return JSON.stringify(value) ?? String(value)
}

/** `message key="value"`, the way klog prints structured lines. Fields without a value are left out. */
export function formatLine(message: string, fields: LogFields = {}): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  const parts = known.map(([name, value]) => `${name}=${quoted(value)}`)
  return parts.length === 0 ? message : `${message} ${parts.join(' ')}`
}

const stamp = (severity: string, now: Date): string => {
  const two = (value: number) => String(value).padStart(2, '0')
  const time = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`
  return `${severity}${two(now.getMonth() + 1)}${two(now.getDate())} ${time}.${String(now.getMilliseconds()).padStart(3, '0')}`
}

export interface TextLogOptions {
  /** Lines of `detail` up to this level are shown; a function is called for each line. Default 0: none. */
  readonly verbosity?: number | (() => number)
  /** Receives each finished line, with its line feed. Default: standard error. */
  readonly write?: (line: string) => void
}

/** Lines for people: `I1115 05:56:26.123 Message key="value"`. */
export function textLog({ verbosity = 0, write = (line) => process.stderr.write(line) }: TextLogOptions = {}): Log {
  const level = typeof verbosity === 'function' ? verbosity : () => verbosity
  const print = (severity: string, message: string, fields?: LogFields) =>
    write(`${stamp(severity, new Date())} ${formatLine(message, fields)}\n`)
  return {
    error: (message, fields) => print('E', message, fields),
    warn: (message, fields) => print('W', message, fields),
    info: (message, fields) => print('I', message, fields),
    detail: (needed, message, fields) => {
      if (needed <= level()) print('I', message, fields)
    },
    shows: (needed) => needed <= level(),
  }
}
