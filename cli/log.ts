import { KpngError, type Log, type LogFields, printableLines } from '@kpng/api'
// Not the whole package: it loads gRPC, which most commands do not need.
import { textLog } from '@kpng/client/log'
import { type Flags, textFlag, type Verbosity } from './context.js'

/** The log for the flags `-v` and `--log-format`, on standard error. */
export async function logFrom(flags: Flags): Promise<{ log: Log; verbosity: Verbosity }> {
  let level = Number(textFlag(flags, 'v') ?? '0')
  if (!Number.isInteger(level) || level < 0) {
    throw new KpngError('usage', `-v takes a whole number, 0 (quiet) to 4, not "${flags.v}".`)
  }
  const verbosity: Verbosity = {
    get: () => level,
    set: (next) => {
      level = next
    },
  }
  const format = textFlag(flags, 'logFormat') ?? 'text'
  return {
    log:
      format === 'json'
        ? await jsonLog(verbosity.get)
        : textLog({ verbosity: verbosity.get, write: (line) => process.stderr.write(printableLines(line)) }),
    verbosity,
  }
}

/** What a first look should not be bothered with is logged with `-v 1`. */
export const quietLog = (log: Log): Log => ({ ...log, info: (message, fields) => log.detail(1, message, fields) })

/** Lines for programs. Written synchronously, so that no line is lost if the process dies. */
async function jsonLog(verbosity: () => number): Promise<Log> {
  const { pino } = await import('pino')
  const logger = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    pino.destination({ dest: 2, sync: true }),
  )
  const fieldsOf = (fields: LogFields = {}) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? value.message : value]),
    )
  return {
    error: (message, fields) => logger.error(fieldsOf(fields), message),
    warn: (message, fields) => logger.warn(fieldsOf(fields), message),
    info: (message, fields) => logger.info(fieldsOf(fields), message),
    detail: (level, message, fields) => {
      if (level <= verbosity()) logger.info({ ...fieldsOf(fields), v: level }, message)
    },
    shows: (level) => level <= verbosity(),
  }
}
