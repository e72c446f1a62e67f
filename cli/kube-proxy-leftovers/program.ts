import { execFile } from 'node:child_process'
import { KpngError } from '@kpng/api'

/** Runs a program with arguments, never through a shell, and gives back what it printed; undefined: it is not installed. */
export type RunProgram = (program: string, args: readonly string[], input?: string) => Promise<string | undefined>

const timeoutMs = 60_000
const maxOutputBytes = 256 * 1024 * 1024

export const runProgram: RunProgram = (program, args, input) =>
  new Promise((resolve, reject) => {
    // What programs say is matched below, so they say it in English.
    const options = { timeout: timeoutMs, maxBuffer: maxOutputBytes, env: { ...process.env, LC_ALL: 'C' } }
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout)
      if (error.code === 'ENOENT') return resolve(undefined)
      const said = (stderr || stdout).trim().slice(0, 2000)
      const why = error.killed ? `it did not end within ${timeoutMs / 1000} s` : said || error.message
      const code = /not supported/i.test(said) ? 'unsupported' : 'refused'
      reject(new KpngError(code, `\`${[program, ...args].join(' ')}\` failed: ${why}`, { cause: error }))
    })
    // A program that ends without reading its input is told by its exit code.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
