import { KpngError } from '@kpng/api'
import { type Backend, jsonLines, type NodeView } from '@kpng/client'
import { runProgram } from '@kpng/linux'

export interface CalloutOptions {
  /** The program, looked up in PATH. Default: CALLOUT of the environment, else `/bin/cat`. */
  readonly program?: string
  readonly args?: readonly string[]
  /** A program that takes longer is killed, and called again later. Default 60,000. */
  readonly timeoutMs?: number
  /** Receives what the program prints. Default: standard output. */
  readonly write?: (text: string) => void
}

/** Runs a program of yours on each change, with the whole view as JSON lines on its standard input. */
export function calloutBackend(options: CalloutOptions = {}): Backend {
  return {
    setup: async () => {},
    sync: (view) => callOut(view, options),
    cleanup: async () => {},
    close: async () => {},
  }
}

async function callOut(view: NodeView, options: CalloutOptions): Promise<void> {
  const program = options.program ?? (process.env.CALLOUT || '/bin/cat')
  const { args = [], timeoutMs = 60_000, write = (text) => void process.stdout.write(text) } = options
  const { code, output } = await runProgram(program, args, {
    input: jsonLines(view),
    limitMs: timeoutMs,
    stderr: 'inherit',
  }).catch((error: unknown) => {
    throw error instanceof KpngError
      ? new KpngError(error.code, `CALLOUT: ${error.message}`, { cause: error.cause })
      : error
  })
  write(output)
  if (code === 0) return
  throw new KpngError(
    'refused',
    `The program ${program} ended with code ${code}. What it printed on standard error says why.`,
  )
}
