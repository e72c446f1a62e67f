import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'

// Network namespaces for tests: rules are never written where the machine's own traffic is.

const CLONE_NEWNET = 0x40000000

interface NamespaceCalls {
  unshare(flags: number): number
  setns(fd: number, type: number): number
}

function calls(): NamespaceCalls {
  const koffi = createRequire(import.meta.url)('koffi')
  const library = koffi.load(null)
  return { unshare: library.func('int unshare(int)'), setns: library.func('int setns(int, int)') }
}

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0

/** Why tests on the kernel cannot run here; undefined when they can. Printed, so that nobody takes a skip for a pass. */
export function whyNoKernel(): string | undefined {
  const reason =
    process.platform !== 'linux'
      ? 'this is not Linux'
      : process.getuid?.() !== 0
        ? 'this is not root'
        : !works('nft', '--version')
          ? 'there is no nft command (Debian package nftables)'
          : !works('ip', '-V')
            ? 'there is no ip command (Debian package iproute2)'
            : whyNoNamespace()
  if (reason) console.warn(`Skipped: tests of the nft backend on a real kernel, because ${reason}.`)
  return reason
}

function whyNoNamespace(): string | undefined {
  try {
    calls()
  } catch (error) {
    return `koffi cannot be loaded (${(error as Error).message})`
  }
  return works('unshare', '--net', 'true') ? undefined : 'network namespaces are not allowed'
}

/** Moves this process, and what it starts, into a network namespace of its own. It is gone when the process ends. */
export function enterNewNamespace(): void {
  if (calls().unshare(CLONE_NEWNET) !== 0) throw new Error('A new network namespace cannot be made.')
  spawnSync('ip', ['link', 'set', 'lo', 'up'])
}

/** Moves this process, and what it starts, into a named network namespace. */
export function enterNamespace(name: string): void {
  const fd = openSync(`/run/netns/${name}`, 'r')
  try {
    if (calls().setns(fd, CLONE_NEWNET) !== 0) throw new Error(`The network namespace ${name} cannot be entered.`)
  } finally {
    closeSync(fd)
  }
}
