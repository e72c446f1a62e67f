import { mkdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Log, messageOf } from '@kpng/api'

// Remembers what kernel settings were before kpng changed them, so that `kpng cleanup` can restore them. The record is in /run: it
// survives the process but not a boot, exactly as the settings do. Most sysctls of conntrack belong to a network namespace, so each
// namespace has a record of its own.

/** One change: the value before kpng, and the value that kpng set. */
interface Change {
  readonly before: number
  readonly value: number
}

/** By path below the root folder, such as `proc/sys/net/netfilter/nf_conntrack_max`. */
type Changes = Record<string, Change>

export interface SysctlRecordOptions {
  readonly log: Log
  /** Where /proc, /sys and /run are. Default `/`. */
  readonly root?: string
}

/** The file of this network namespace. */
async function recordFile(root: string): Promise<string> {
  const namespace = (await readlink('/proc/self/ns/net')).replace(/\D/g, '')
  return join(root, 'run/kpng', `sysctls-${namespace}.json`)
}

async function readChanges(file: string): Promise<Changes> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Changes
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

async function writeChanges(file: string, changes: Changes): Promise<void> {
  if (Object.keys(changes).length === 0) return await rm(file, { force: true })
  await mkdir(dirname(file), { recursive: true, mode: 0o755 })
  await writeFile(`${file}.new`, `${JSON.stringify(changes, null, 2)}\n`)
  await rename(`${file}.new`, file)
}

/** Adds changes to the record. kpng works without the record, so a failure is only logged. */
export async function rememberChanges(made: Changes, { log, root = '/' }: SysctlRecordOptions): Promise<void> {
  if (Object.keys(made).length === 0) return
  try {
    const file = await recordFile(root)
    const changes = await readChanges(file).catch(() => ({}) as Changes)
    for (const [path, { before, value }] of Object.entries(made)) {
      const known = changes[path]
      // Two changes by kpng in a row: the value before the first one counts.
      changes[path] = { before: known?.value === before ? known.before : before, value }
      if (changes[path].before === value) delete changes[path]
    }
    await writeChanges(file, changes)
  } catch (error) {
    log.info('Cannot remember the kernel settings that were changed; `kpng cleanup` will not restore them', {
      folder: join(root, 'run/kpng'),
      error: messageOf(error),
    })
  }
}

/**
 * Restores every recorded setting that still has the value that kpng set. Others were changed since, and stay. Returns what failed, as
 * sentences; those settings stay in the record.
 */
export async function restoreSysctls({
  log,
  root = '/',
  only = () => true,
}: SysctlRecordOptions & {
  /** Whether a path of the record is restored. Default: all. */
  readonly only?: (path: string) => boolean
}): Promise<string[]> {
  const failed: string[] = []
  const left: Changes = {}
  const file = await recordFile(root)
  const changes = await readChanges(file).catch((error) => {
    failed.push(`The record of changed kernel settings, ${file}, cannot be read: ${messageOf(error)}. Delete it.`)
    return {} as Changes
  })
  for (const [path, change] of Object.entries(changes)) {
    if (!only(path)) {
      left[path] = change
      continue
    }
    try {
      await restore(join(root, path), change, log)
    } catch (error) {
      left[path] = change
      failed.push(`${join(root, path)} cannot be set back to ${change.before}: ${messageOf(error)}.`)
    }
  }
  try {
    if (Object.keys(changes).length > 0) await writeChanges(file, left)
  } catch (error) {
    failed.push(
      `The record of changed kernel settings, ${file}, cannot be written: ${messageOf(error)}. Run it as root.`,
    )
  }
  return failed
}

async function restore(path: string, { before, value }: Change, log: Log): Promise<void> {
  const now = Number((await readFile(path, 'utf8')).trim())
  if (now !== value) {
    log.info('Left a kernel setting as it is: something else changed it after kpng', { path, now, setByKpng: value })
    return
  }
  await writeFile(path, String(before), { flag: 'r+' })
  log.info('Restored a kernel setting', { path, before: value, value: before })
}
