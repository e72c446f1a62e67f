import { KpngError, type Log, messageOf } from '@kpng/api'
import type { RunProgram } from './program.js'

/** One command that removes something of kube-proxy. */
export interface Removal {
  /** What it removes, for the log. */
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
  readonly sight: Sight
  /** Notes what could not be checked or removed; the rest continues. */
  failed(message: string): void
}

/** What could be checked for one mode. If a check failed, the result is unknown, not "clean". */
export interface Sight {
  /** Whether at least one program could check. */
  seen: boolean
  /** The programs that are not installed. */
  readonly missing: string[]
}

/** Finds what one mode of kube-proxy left here. Changes nothing. */
export type FindLeftovers = (surroundings: Surroundings) => Promise<Removal[]>

/** What a program prints: an empty text if it fails or the kernel lacks the feature; undefined if it is not installed. */
export async function look(
  { run, log, sight, failed }: Surroundings,
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const printed = await run(program, args)
    if (printed !== undefined) sight.seen = true
    else {
      sight.missing.push(program)
      log.info('Skipped: the program is not installed', { program })
    }
    return printed
  } catch (error) {
    if (error instanceof KpngError && error.code === 'unsupported') {
      sight.seen = true
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
