import { readFileSync, statSync } from 'node:fs'

/** The root of the cgroup tree has this inode. In a container without the host's tree, what is mounted is a part of it. */
const rootInode = 1

export interface CgroupTree {
  /** Where it is mounted. */
  readonly path: string
  /** Whether it is the whole tree of the machine. */
  readonly isWhole: boolean
}

/**
 * The mounted tree of cgroups, version 2. Undefined if there is none.
 * @param mounts the text of /proc/self/mountinfo; for tests
 */
export function cgroupTree(mounts = readFileSync('/proc/self/mountinfo', 'utf8')): CgroupTree | undefined {
  const found: CgroupTree[] = []
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const path = before.split(' ')[4]
    if (path !== undefined && after.startsWith('cgroup2 ')) found.push({ path, isWhole: isRootCgroup(path) })
  }
  return found.find(({ isWhole }) => isWhole) ?? found[0]
}

/** Whether a folder is the root of the machine's cgroups. */
export function isRootCgroup(path: string): boolean {
  try {
    return statSync(path).ino === rootInode
  } catch {
    return false
  }
}
