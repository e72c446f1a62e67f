import { readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '@kpng/linux/lab'

/** Removes the temporary folders of playgrounds that were killed. A log is kept: its playground may have ended with a warning. */
export function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^kpng-(?:lab|playground)-(\d+)-\w+$/.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // Another user's.
    }
  }
}
