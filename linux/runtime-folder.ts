import { lstatSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Where sockets, locks and records of a running kpng are. systemd names the folder of a unit (`RuntimeDirectory=`) in the environment. */
export function runtimeFolder({ RUNTIME_DIRECTORY = '', XDG_RUNTIME_DIR }: NodeJS.ProcessEnv = process.env): string {
  const [given] = RUNTIME_DIRECTORY.split(':')
  if (given) return given
  const user = process.geteuid?.() ?? 0
  if (user === 0) return '/run/kpng'
  return XDG_RUNTIME_DIR === undefined ? sharedFolder(user) : join(XDG_RUNTIME_DIR, 'kpng')
}

/** Where there is no folder of the user's own: one that anybody could have made first. */
export const sharedFolder = (user: number): string => `/tmp/kpng-${user}`

/**
 * Why others may have made what is in a folder, or may replace it; undefined if they cannot. The folder belongs to root or to this user, or to
 * the user that root gave it to: nobody else can make one where only root can write, such as in /run.
 */
export function whyUnsafe(folder: string): string | undefined {
  const own = [0, process.geteuid?.()]
  const { uid, mode } = lstatSync(folder)
  const above = statSync(dirname(folder))
  const isClosed = (above.mode & 0o022) === 0
  if (!own.includes(above.uid) || !(isClosed || (above.mode & 0o1000) !== 0))
    return `others may write ${dirname(folder)}`
  if (!own.includes(uid) && !(above.uid === 0 && isClosed)) return `${folder} belongs to another user (${uid})`
  return (mode & 0o022) === 0 ? undefined : `others may write ${folder}`
}
