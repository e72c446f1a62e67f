import { spawnSync } from 'node:child_process'
import { outputOf } from '../program.js'

/** Several `ip` commands in one process, in a namespace of a lab or (undefined) the machine's own. */
export const ipBatch = (namespace: string | undefined, lines: readonly string[]): Promise<string> =>
  outputOf('ip', [...(namespace === undefined ? [] : ['-n', namespace]), '-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    limitMs: 30_000,
  })

/** For the end of the process, when it can no longer wait. Continues after a line that fails. */
export function ipBatchNow(lines: readonly string[]): void {
  spawnSync('ip', ['-force', '-batch', '-'], { input: `${lines.join('\n')}\n`, stdio: ['pipe', 'ignore', 'ignore'] })
}
