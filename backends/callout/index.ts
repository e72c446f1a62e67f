import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { KpngError, messageOf } from '@kpng/api'
import { type Backend, jsonLines, type NodeView } from '@kpng/client'

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

function callOut(view: NodeView, options: CalloutOptions): Promise<void> {
  const program = options.program ?? (process.env.CALLOUT || '/bin/cat')
  const { args = [], timeoutMs = 60_000, write = (text) => void process.stdout.write(text) } = options
  return new Promise((resolve, reject) => {
    const child = start(program, args)
    const limitTimer = setTimeout(() => child.kill('SIGKILL'), timeoutMs).unref()
    // Attached before anything else can fail: after EMFILE there are no streams, and an 'error' that nobody hears ends kpng.
    child.on('error', (error) => {
      if (child.pid !== undefined) return
      clearTimeout(limitTimer)
      reject(cannotStart(program, error))
    })
    const output: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => output.push(chunk))
    child.on('exit', async (code, signal) => {
      clearTimeout(limitTimer)
      if (child.stdout) await endOf(child.stdout)
      write(Buffer.concat(output).toString())
      if (code === 0) return resolve()
      const how = signal ? `was ended by ${signal} (it may take ${timeoutMs} ms)` : `ended with code ${code}`
      reject(new KpngError('refused', `The program ${program} ${how}. What it printed on standard error says why.`))
    })
    // A program that does not read its input to the end closes the pipe, which is not a failure.
    child.stdin?.on('error', () => {})
    child.stdin?.end(jsonLines(view))
  })
}

/** Standard error is that of kpng: what the program says there is seen at once. */
function start(program: string, args: readonly string[]): ChildProcess {
  try {
    return spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  } catch (error) {
    // Node throws some failures, such as ENOMEM, and emits others.
    throw cannotStart(program, error)
  }
}

function cannotStart(program: string, error: unknown): KpngError {
  const { code } = error as NodeJS.ErrnoException
  const advice =
    code === 'EMFILE' || code === 'ENFILE'
      ? 'No file descriptors are left. Raise the limit of kpng (LimitNOFILE= of a systemd unit, `ulimit -n`).'
      : 'Check the path of the program: --program, or CALLOUT of the environment.'
  return new KpngError('unavailable', `The program ${program} cannot be started: ${messageOf(error)}. ${advice}`, {
    cause: error,
  })
}

/** How long what a program printed may still be on its way when it has ended. */
const outputGraceMs = 200

/** Ends with the stream, but never waits for long: something that the program left running may hold it open for ever. */
async function endOf(stream: Readable): Promise<void> {
  if (stream.readableEnded) return
  let timer: NodeJS.Timeout | undefined
  const grace = new Promise((resolve) => {
    timer = setTimeout(resolve, outputGraceMs)
  })
  await Promise.race([new Promise((resolve) => stream.once('end', resolve)), grace])
  clearTimeout(timer)
  stream.destroy()
}
