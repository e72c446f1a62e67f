export type LogFields = Readonly<Record<string, unknown>>

/**
 * The log of kpng. Messages are constant sentences; everything that varies is a field. `detail` is shown only
 * if the verbosity (`-v`) is at least its level; guard costly fields with `shows`.
 *
 * Levels, as in kube-proxy: 1 connections and set-up, 2 one line per sync, 3 one line per object, 4 one line per connection, 5 and
 * up everything.
 */
export interface Log {
  error(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  detail(level: number, message: string, fields?: LogFields): void
  shows(level: number): boolean
}

const nothing = () => {}

/** Logs nothing. */
export const silentLog: Log = { error: nothing, warn: nothing, info: nothing, detail: nothing, shows: () => false }
