import { spawn, spawnSync } from 'node:child_process'
import { ConformanceError } from '../error.js'

/** Runs a program to its end, with its input if it has one. Rejects with what it said when it fails. */
export function runProgram(program: string, args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    let output = ''
    let complaint = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      complaint += chunk
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      const what = error.code === 'ENOENT' ? 'is not installed, or not in PATH' : `cannot be run: ${error.message}`
      reject(new ConformanceError('unsupported', `The program ${program} ${what}.`, { cause: error }))
    })
    child.on('close', (code, signal) => {
      if (code === 0) return resolve(output)
      const said = complaint.trim() || output.trim() || `ended with ${signal ?? `code ${code}`}`
      reject(new ConformanceError('failed', `${program} ${args.join(' ')}: ${said}`))
    })
    // A program that ends without reading its input says why in its complaint.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** Several `ip` commands in one process, in a namespace of the lab or (undefined) the machine's own. */
export const ipBatch = (namespace: string | undefined, lines: readonly string[]): Promise<string> =>
  runProgram('ip', [...(namespace === undefined ? [] : ['-n', namespace]), '-batch', '-'], `${lines.join('\n')}\n`)

/** For the very end of the process, when nothing can be waited for. Goes on after a line that fails. */
export function ipBatchNow(lines: readonly string[]): void {
  spawnSync('ip', ['-force', '-batch', '-'], { input: `${lines.join('\n')}\n`, stdio: ['pipe', 'ignore', 'ignore'] })
}
