import { execFile } from 'node:child_process'
import { KpngError } from '@kpng/api'

/** Runs a program with arguments, never through a shell, and gives back what it printed. */
export type RunProgram = (program: string, args: readonly string[], input?: string) => Promise<string>

const timeoutMs = 30_000
const maxOutputBytes = 64 * 1024 * 1024

export const runProgram: RunProgram = (program, args, input) =>
  new Promise((resolve, reject) => {
    const options = { timeout: timeoutMs, maxBuffer: maxOutputBytes, windowsHide: true }
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      if (error.code === 'ENOENT') {
        return reject(
          new KpngError('unsupported', `${program} is not installed or not in PATH; install it and start again.`, {
            cause: error,
          }),
        )
      }
      const said = (stderr || stdout).trim().slice(0, 2000)
      const why = error.killed ? `it did not end within ${timeoutMs / 1000} s` : said || error.message
      reject(new KpngError('refused', `\`${[program, ...args].join(' ')}\` failed: ${why}`, { cause: error }))
    })
    // A program that ends without reading its input is told by its exit code.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

/** Whether something failed because its program is not installed. */
export function isMissingProgram(error: unknown): boolean {
  const { code, syscall } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  return code === 'ENOENT' && syscall?.startsWith('spawn') === true
}
