import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { loadLibc } from '../libc.js'

const CLONE_NEWNET = 0x40000000

/**
 * Moves this process, and what it starts, into a network namespace of its own. It is gone when the process ends. Only the main
 * thread moves: below /proc/sys/net, only the synchronous calls of `fs` see and change the files of the namespace. The others would change the
 * machine on which the tests run.
 */
export async function enterNewNamespace(): Promise<void> {
  if ((await loadLibc()).unshare(CLONE_NEWNET) !== 0) throw new Error('A new network namespace cannot be made.')
  spawnSync('ip', ['link', 'set', 'lo', 'up'])
}

/** Moves this process, and what it starts, into a named network namespace. */
export async function enterNamespace(name: string): Promise<void> {
  const libc = await loadLibc()
  const fd = openSync(`/run/netns/${name}`, 'r')
  try {
    if (libc.setns(fd, CLONE_NEWNET) !== 0) throw new Error(`The network namespace ${name} cannot be entered.`)
  } finally {
    closeSync(fd)
  }
}
