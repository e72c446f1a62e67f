import { existsSync, mkdirSync } from 'node:fs'
import { release } from 'node:os'
import { KpngError, messageOf } from '@kpng/api'
import { type Capability, hasCapability } from '@kpng/linux'
import { BpfError, type BpfSyscalls, cgroupTree, isBpffs, isRootCgroup } from '@kpng/linux/bpf'

/** Makes sure that a folder is in a bpf file system, and mounts one if it is not. */
export function provideBpffs(sys: BpfSyscalls, folder: string): void {
  if (isBpffs(folder)) return
  try {
    // Not its parents: Node never comes back from a file system in which nothing can be made.
    if (!existsSync(folder)) mkdirSync(folder)
    sys.mountBpffs(folder)
  } catch (error) {
    const right = hasCapability('CAP_SYS_ADMIN') ? '' : ' kpng has no CAP_SYS_ADMIN, so it cannot mount one.'
    throw new KpngError(
      'unsupported',
      `${folder} is not a bpf file system, which keeps Services served while kpng restarts.${right} Run "mount -t bpf bpf ${folder}" on the node, or give the path of one with --bpffs. (${messageOf(error)})`,
      { cause: error },
    )
  }
}

/** The cgroup whose sockets are served: the given one, or the root. */
export function findCgroup(given: string | undefined): { readonly path: string; readonly isRoot: boolean } {
  if (given !== undefined) {
    if (isCgroup(given)) return { path: given, isRoot: isRootCgroup(given) }
    const advice = isCgroup(`${given}/unified`)
      ? `Give ${given}/unified.`
      : 'Give the folder in which the node has its cgroups, such as /sys/fs/cgroup.'
    throw new KpngError('unsupported', `${given} is not a cgroup of version 2. ${advice}`)
  }
  const tree = cgroupTree()
  if (!tree) {
    throw new KpngError(
      'unsupported',
      'No cgroup tree of version 2 is mounted. Run "mount -t cgroup2 none /sys/fs/cgroup/unified" on the node, or use to-nft.',
    )
  }
  if (!tree.isWhole) {
    throw new KpngError(
      'unsupported',
      `${tree.path} is not the root of the node's cgroups: a container sees only its own part. Mount /sys/fs/cgroup of the host into it and give that path with --cgroup.`,
    )
  }
  return { path: tree.path, isRoot: true }
}

const isCgroup = (folder: string): boolean =>
  existsSync(`${folder}/cgroup.procs`) && existsSync(`${folder}/cgroup.controllers`)

const needed: readonly Capability[] = ['CAP_BPF', 'CAP_NET_ADMIN', 'CAP_SYS_ADMIN']

/** What the kernel refused, as an error that says what to do. */
export function explained(error: unknown): unknown {
  if (!(error instanceof BpfError)) return error
  if (error.errno === 'EPERM' || error.errno === 'EACCES') {
    const has = needed.filter((capability) => hasCapability(capability))
    const own = has.length === 0 ? 'none of them' : has.join(' and ')
    const advice =
      has.includes('CAP_SYS_ADMIN') || has.length === 2
        ? 'something else forbids it: a user namespace, seccomp, a security module or kernel lockdown'
        : 'run kpng as root, or give it both'
    return new KpngError(
      'unsupported',
      `${error.message} eBPF needs CAP_BPF and CAP_NET_ADMIN (or CAP_SYS_ADMIN), and kpng has ${own}: ${advice}. Or use to-nft.`,
      { cause: error },
    )
  }
  return new KpngError(
    'unsupported',
    `${error.message} The kernel is ${release()}; eBPF for sockets needs 5.14 or newer with CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF and CONFIG_INET. Use another kernel, or to-nft.`,
    { cause: error },
  )
}
