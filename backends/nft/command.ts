import { spawn } from 'node:child_process'
import { KpngError, messageOf } from '@kpng/api'

export interface CommandResult {
  /** The exit code; 128 and up when a signal ended it. */
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** Runs a program with these arguments, and this on its standard input. Rejects only when it cannot be started. */
export function runCommand(command: string, args: readonly string[], input = ''): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { stdio: ['pipe', 'pipe', 'pipe'] })
    const output: Buffer[] = []
    const errors: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    child.on('error', (error) =>
      reject(
        new KpngError(
          'unavailable',
          `The command "${command}" cannot be run: ${messageOf(error)}. Install it, or name its path.`,
          {
            cause: error,
          },
        ),
      ),
    )
    child.on('close', (code) =>
      resolve({
        code: code ?? 128,
        output: Buffer.concat(output).toString(),
        errors: Buffer.concat(errors).toString().trim(),
      }),
    )
    // A program that ends before it has read everything says why on standard error; the broken pipe adds nothing.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}
