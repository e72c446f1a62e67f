import { spawnSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { outputOf } from '@kpng/linux'
import { hosts } from '../addresses.js'
import { ipBatchNow } from './ip.js'

/** `kpng-<pid>-<count>-<host>`: the process that made it can be read off the name. */
export const namespaceName = (pid: number, count: number, host: string): string => `kpng-${pid}-${count}-${host}`

const namePattern = new RegExp(`^kpng-(\\d+)-\\d+-(?:${hosts.join('|')})$`)

/** The process that made a namespace, if its name is one of ours. */
export function makerOf(namespace: string): number | undefined {
  const pid = namePattern.exec(namespace)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Removes what kits that were killed left behind: processes in their namespaces (a proxy under test), then the namespaces. */
export async function sweepLeftovers(): Promise<string[]> {
  const names = await readdir('/run/netns').catch(() => [])
  const dead = names.filter((name) => {
    const pid = makerOf(name)
    return pid !== undefined && !isAlive(pid)
  })
  for (const name of dead) await endProcessesIn(name)
  if (dead.length > 0) ipBatchNow(dead.map((name) => `netns delete ${name}`))
  return dead
}

/** Ends whatever still runs in a namespace that the kit made: nobody else has a reason to be there. */
export async function endProcessesIn(namespace: string): Promise<void> {
  endAll(await outputOf('ip', ['netns', 'pids', namespace], { limitMs: 10_000 }).catch(() => ''))
}

/** The same for the very end of the process, when nothing can be waited for. */
export function endProcessesInNow(namespace: string): void {
  endAll(spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' }).stdout ?? '')
}

function endAll(pids: string): void {
  for (const pid of pids.split('\n').filter((line) => line !== '')) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended by itself in the meantime.
    }
  }
}
