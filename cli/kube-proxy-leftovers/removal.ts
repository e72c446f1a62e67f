import { KpngError, type Log, messageOf } from '@kpng/api'
import type { RunProgram } from './program.js'

/** One command that takes something of kube-proxy's away. */
export interface Removal {
  /** What goes, for the log. */
  readonly what: string
  readonly fields?: Readonly<Record<string, string | number>>
  readonly program: string
  readonly args: readonly string[]
  readonly input?: string
}

/** What a mode of kube-proxy needs to look for its leftovers. */
export interface Surroundings {
  readonly run: RunProgram
  readonly log: Log
  /** Notes what could not be looked at or not be removed; the rest goes on. */
  failed(message: string): void
}

/** Finds what one mode of kube-proxy left here. Only looks. */
export type FindLeftovers = (surroundings: Surroundings) => Promise<Removal[]>

/** What a program prints: nothing when the kernel lacks what it shows, or when it fails; undefined when it is not installed. */
export async function look(
  { run, log, failed }: Surroundings,
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const printed = await run(program, args)
    if (printed === undefined) log.info('Skipped: the program is not installed', { program })
    return printed
  } catch (error) {
    if (error instanceof KpngError && error.code === 'unsupported') {
      log.info('Skipped: the kernel does not support it', { program, error: messageOf(error) })
    } else {
      failed(messageOf(error))
    }
    return ''
  }
}

/** A removal as a user would type it. */
export const commandLine = ({ program, args, input }: Removal): string =>
  input === undefined ? [program, ...args].join(' ') : `${[program, ...args].join(' ')} <<'END'\n${input}END`
