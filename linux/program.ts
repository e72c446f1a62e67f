import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { KpngError, messageOf } from '@kpng/api'

// How kpng runs programs that end by themselves. It uses no shell and works on every platform.

export interface ProgramOptions {
  /** What the program reads on standard input. Default: nothing. */
  readonly input?: string
  /** A program that takes longer is killed, and the call fails. */
  readonly limitMs: number
  /** A program that prints more is killed, and the call fails. Default 256 MiB. */
  readonly maxOutputBytes?: number
  /** `inherit`: what the program says on standard error is seen at once, as if this process said it. Default: it is part of the result. */
  readonly stderr?: 'inherit' | 'pipe'
  /** The whole environment of the program. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
}

export interface ProgramResult {
  /** The exit code; 128 plus the number of the signal if a signal ended it, as in a shell. */
  readonly code: number
  /** What it printed on standard output. */
  readonly output: string
  /** What it printed on standard error, without the spaces around it. Empty if it was passed on. */
  readonly errors: string
}

const defaultMaxOutputBytes = 256 * 1024 * 1024

/** A program has this long between SIGTERM and SIGKILL. */
const killDelayMs = 2000

/** A child that the program left running may keep its pipes open. They are read until nothing came for this long. */
const quietPipesMs = 200

/**
 * Runs a program until it ends. If the program fails, the call still resolves: check `code`. Rejects with a `KpngError` if the program
 * cannot be started, takes too long or prints too much; the program has then been killed.
 */
export function runProgram(command: string, args: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const { input = '', limitMs, maxOutputBytes = defaultMaxOutputBytes } = options
    const shown = [command, ...args].join(' ')
    const child = start(command, args, options)
    const output = new Printed(child.stdout)
    const errors = new Printed(child.stderr)
    let failure: KpngError | undefined
    let ended: number | undefined
    let killTimer: NodeJS.Timeout | undefined
    let isSettled = false
    const settle = () => {
      if (isSettled) return
      isSettled = true
      clearTimeout(limitTimer)
      clearTimeout(killTimer)
      release(child)
      if (failure) reject(failure)
      else resolve({ code: ended ?? 128, output: output.text(), errors: errors.text().trim() })
    }
    const stop = (why: KpngError) => {
      if (failure) return
      failure = why
      if (ended !== undefined) return settle()
      child.kill('SIGTERM')
      killTimer = setTimeout(() => {
        child.kill('SIGKILL')
        // Even SIGKILL does not end a process that waits inside the kernel, so do not wait for its end.
        settle()
      }, killDelayMs)
    }
    const limitTimer = setTimeout(() => {
      // If it has ended, only a child that it left running still prints.
      if (ended === undefined) stop(tookTooLong(shown, limitMs))
      else settle()
    }, limitMs)
    // Attach this first: after EMFILE there are no streams, and an 'error' event without a listener would end this process.
    child.on('error', (error) => {
      // Also emitted if a signal could not be sent.
      if (child.pid !== undefined) return
      failure = cannotStart(command, error)
      settle()
    })
    for (const printed of [output, errors]) {
      printed.onData = () => {
        if (printed.bytes > maxOutputBytes) stop(printedTooMuch(shown, maxOutputBytes))
      }
    }
    child.on('exit', (code, signal) => {
      ended = code ?? 128 + (signal ? constants.signals[signal] : 0)
      if (failure) settle()
      else whenQuiet([output, errors], settle)
    })
    child.on('close', settle)
    // A program that ends without reading all its input says why on standard error and with its code.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

/** The output of a program. If the program fails, rejects with its error output. */
export async function outputOf(command: string, args: readonly string[], options: ProgramOptions): Promise<string> {
  const { code, output, errors } = await runProgram(command, args, options)
  if (code === 0) return output
  const said = (errors || output.trim()).slice(0, 2000) || `it ended with code ${code}`
  throw new KpngError('refused', `\`${[command, ...args].join(' ')}\` failed: ${said}`)
}

/** Whether something failed because its program is not installed. */
export function isMissingProgram(error: unknown): boolean {
  const { code, syscall } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return code === 'ENOENT' && syscall?.startsWith('spawn') === true
}

/** Throws for what Node does not emit as an 'error' event: ENOMEM, arguments that are too long or hold a zero byte. */
function start(
  command: string,
  args: readonly string[],
  { env = process.env, stderr = 'pipe' }: ProgramOptions,
): ChildProcess {
  try {
    return spawn(command, args, { env, stdio: ['pipe', 'pipe', stderr], windowsHide: true })
  } catch (error) {
    throw cannotStart(command, error)
  }
}

/** Releases everything that would make this process wait for the child, or for children that the child left running. */
function release(child: ChildProcess): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
  child.unref()
}

/** What came out of one stream so far. */
class Printed {
  readonly #chunks: Buffer[] = []
  bytes = 0
  onData = () => {}

  /** @param stream missing if the program could not be started */
  constructor(stream: NodeJS.ReadableStream | null | undefined) {
    stream?.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.bytes += chunk.length
      this.onData()
    })
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString()
  }
}

/** Calls back when nothing came for a while. Data that is already in the pipes is read first, even if the timer is late. */
function whenQuiet(streams: readonly Printed[], callback: () => void): void {
  const total = () => streams.reduce((sum, { bytes }) => sum + bytes, 0)
  const before = total()
  setTimeout(() => {
    setImmediate(() => setImmediate(() => (total() === before ? callback() : whenQuiet(streams, callback))))
  }, quietPipesMs).unref()
}

const advice: Readonly<Record<string, string>> = {
  EACCES: 'It may not be executed. Check its permissions.',
  EPERM: 'It may not be executed. Check its permissions.',
  EMFILE:
    'This process has no file descriptors left. Raise its limit (LimitNOFILE= of a systemd unit, `ulimit -n`), or find out what holds them: ls /proc/<pid>/fd.',
  ENFILE: 'This machine has no file descriptors left. Raise the sysctl fs.file-max.',
  EAGAIN: 'No more processes may be started. Raise the limit (pids.max of the container, TasksMax= of a systemd unit).',
  ENOMEM: 'There is not enough memory. Raise the memory limit, or free some.',
  E2BIG: 'Its arguments are too long.',
}

function cannotStart(command: string, error: unknown): KpngError {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  if (code === 'ENOENT') {
    const sentence = `${command} is not installed or not in PATH. Install it, or add its folder to PATH.`
    return new KpngError('unsupported', sentence, { cause: error })
  }
  return new KpngError(
    'unavailable',
    `The program "${command}" cannot be started: ${messageOf(error)}. ${advice[code] ?? 'Try to run it by hand.'}`,
    { cause: error },
  )
}

const tookTooLong = (shown: string, limitMs: number): KpngError =>
  new KpngError(
    'unavailable',
    `\`${shown}\` did not end within ${limitMs / 1000} s and was killed. Run it by hand to see what it waits for.`,
  )

const printedTooMuch = (shown: string, maxOutputBytes: number): KpngError =>
  new KpngError('unavailable', `\`${shown}\` printed more than ${maxOutputBytes} bytes and was killed.`)
