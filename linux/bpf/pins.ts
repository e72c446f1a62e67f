import { statfsSync } from 'node:fs'
import { BpfError, type BpfSyscalls } from './syscalls.js'

/** linux/magic.h */
const BPF_FS_MAGIC = 0xcafe4a11

/** Whether a folder is in a bpf file system. */
export function isBpffs(folder: string): boolean {
  try {
    return statfsSync(folder).type === BPF_FS_MAGIC
  } catch {
    return false
  }
}

const pathBytes = (path: string): Buffer => Buffer.from(`${path}\0`)

/** Gives a map or link a name in a bpf file system: it lives as long as the file. */
export function pin(sys: BpfSyscalls, fd: number, path: string): void {
  sys.bpf('BPF_OBJ_PIN', { pathname: pathBytes(path), bpf_fd: fd }, `pin ${path}`)
}

/** Opens what is pinned. Returns its descriptor; undefined if there is no such file. */
export function openPinned(sys: BpfSyscalls, path: string): number | undefined {
  try {
    return sys.bpf('BPF_OBJ_GET', { pathname: pathBytes(path) }, `open ${path}`)
  } catch (error) {
    if (error instanceof BpfError && error.errno === 'ENOENT') return undefined
    throw error
  }
}
