import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { outputOf } from '../program.js'
import { ipBatchNow } from './ip.js'

/** `kpng-<pid>-<count>-<host>`: unique on the machine, and the process that made it can be read off the name. */
export const namespaceName = (pid: number, count: number, host: string): string => `kpng-${pid}-${count}-${host}`

/** The process that made a namespace, if its name is that of a lab. */
export function makerOf(namespace: string): number | undefined {
  const pid = /^kpng-(\d+)-\d+-[A-Za-z0-9-]+$/.exec(namespace)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

/** The namespaces of labs that a process made and that still exist. */
export const namespacesOf = async (pid: number): Promise<string[]> =>
  (await readdir('/run/netns').catch(() => [])).filter((name) => makerOf(name) === pid)

/** A process that has ended but that nobody has waited for is not alive: in containers without an init it stays for ever. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return process.platform !== 'linux'
  }
}

/** Removes what labs whose process was killed left behind: processes in their namespaces, then the namespaces. */
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

/** Kills all processes in a namespace of a lab. Only processes of the lab run there. */
export async function endProcessesIn(namespace: string): Promise<void> {
  endAll(await outputOf('ip', ['netns', 'pids', namespace], { limitMs: 10_000 }).catch(() => ''))
}

/** The same for the end of the process, when it can no longer wait. */
export function endProcessesInNow(namespace: string): void {
  endAll(spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' }).stdout ?? '')
}

/** Never this process itself, which a test may have moved there. */
function endAll(pids: string): void {
  for (const pid of pids.split('\n').filter((line) => line !== '' && Number(line) !== process.pid)) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }
}
