import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Log, messageOf } from '@kpng/api'

/** A sysctl, or a parameter of a kernel module, and the number that it should have. */
export interface KernelSetting {
  /** Its file, below the root folder: `proc/sys/net/ipv4/ip_forward`. */
  readonly path: string
  readonly value: number
  /** A greater value that is there already is left. */
  readonly atLeast?: boolean
  /** What to do if there is no such file. */
  readonly ifMissing?: string
  /** What to do if it is read-only, as everything below /proc/sys is in a container without privileges. */
  readonly ifReadOnly?: string
}

export interface ApplyOptions {
  readonly log: Log
  /** Where /proc and /sys are. Default `/`. */
  readonly root?: string
  /** Called after a change, with the value that was there before. */
  readonly onChanged?: (before: number) => void
}

export type SettingOutcome = 'set' | 'kept' | 'failed'

/** The file of a sysctl such as `net.ipv4.ip_forward`. */
export const sysctlPath = (name: string): string => `proc/sys/${name.replaceAll('.', '/')}`

/**
 * Sets a value unless it is as it should be. A failure is logged, not thrown: kpng works without most settings. The file is opened by this
 * thread: below /proc/sys/net, each thread sees the files of its own network namespace, and other threads may be in another one.
 */
export async function applySetting(
  setting: KernelSetting,
  { log, root = '/', onChanged = () => {} }: ApplyOptions,
): Promise<SettingOutcome> {
  const { value, atLeast = false } = setting
  const path = join(root, setting.path)
  try {
    const before = readSetting(path)
    if (atLeast && before > value)
      log.detail(1, 'Left a kernel setting that is higher already', { path, before, value })
    if (atLeast ? before >= value : before === value) return 'kept'
    // The flag keeps a missing file from being made: in a container /proc may be an empty folder.
    writeFileSync(path, String(value), { flag: 'r+' })
    log.info('Changed a kernel setting', { path, before, value })
    onChanged(before)
    return 'set'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const fields = { path, value, hint: hintFor(setting, error) }
    // A container without privileges sees the node's settings and cannot change them. What is not wrong there is not warned about at each start.
    if (code === 'EROFS') log.info('Left a kernel setting as the node has it', fields)
    // Some files can be read by root only. Without rights nobody can tell whether the value is large enough already, and on most
    // machines it is: a warning at each start would be about nothing.
    else if (atLeast && code === 'EACCES' && isUnreadable(path)) {
      log.detail(1, 'Cannot see whether a kernel setting is large enough', fields)
    } else log.warn('Cannot change a kernel setting; continuing without it', fields)
    return 'failed'
  }
}

const readSetting = (path: string): number => Number(readFileSync(path, 'utf8').trim())

function isUnreadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return false
  } catch {
    return true
  }
}

function hintFor({ ifMissing, ifReadOnly }: KernelSetting, error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return `There is no such file. ${ifMissing ?? 'This kernel does not have the setting.'}`
    case 'EROFS':
      return `It is read-only in this container. ${ifReadOnly ?? 'Set it on the node.'}`
    case 'EACCES':
    case 'EPERM':
      return 'It may not be written. Set it on the node, or run kpng once with --init-only in a privileged init container.'
    default:
      return messageOf(error)
  }
}
