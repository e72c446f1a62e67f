import { spawn } from 'node:child_process'
import { KpngError, messageOf } from '@kpng/api'

export interface CommandResult {
  /** The exit code; 128 and up when a signal ended it. */
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** A program that takes longer hangs. Much input takes its time: 10 seconds a megabyte, which is many times what nft needs. */
const timeoutMsFor = (input: string): number => 30_000 + input.length / 100

/**
 * Runs a program with these arguments, and this on its standard input. Rejects only when it cannot be started, or when it had to
 * be ended because it took too long.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  input = '',
  timeoutMs = timeoutMsFor(input),
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { stdio: ['pipe', 'pipe', 'pipe'] })
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      // What it started may hold its pipes, so that it would never count as ended.
      reject(tookTooLong(command, args, timeoutMs))
    }, timeoutMs)
    const output: Buffer[] = []
    const errors: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(cannotRun(command, error))
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({
        code: code ?? 128,
        output: Buffer.concat(output).toString(),
        errors: Buffer.concat(errors).toString().trim(),
      })
    })
    // A program that ends before it has read everything says why on standard error; the broken pipe adds nothing.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

const cannotRun = (command: string, error: Error): KpngError =>
  new KpngError(
    'unavailable',
    `The command "${command}" cannot be run: ${messageOf(error)}. Install it, or name its path.`,
    { cause: error },
  )

function tookTooLong(command: string, args: readonly string[], timeoutMs: number): KpngError {
  const seconds = Math.round(timeoutMs / 100) / 10
  return new KpngError(
    'unavailable',
    `The command "${[command, ...args].join(' ')}" did not end within ${seconds} s and was killed. It is tried again; run it by hand to see what it waits for.`,
  )
}
