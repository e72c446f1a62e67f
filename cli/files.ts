import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { KpngError } from '@kpng/api'

// Paths that a user gives for output, checked before a long run whose result could then not be written.

const sentences: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist. Create it, or give another path.',
  ENOTDIR: 'is not a folder. Give another path.',
  EACCES: 'may not be written to. Check its permissions, or give another path.',
  EROFS: 'is on a read-only file system. Give another path.',
}

const unusable = (flag: string, path: string, error: unknown): KpngError => {
  const { code = '', message } = error as NodeJS.ErrnoException
  return new KpngError('unavailable', `${flag}: ${path} ${sentences[code] ?? `cannot be used: ${message}.`}`, {
    cause: error,
  })
}

/** Throws unless a file can be written at this path. */
export async function checkOutputFile(flag: string, path: string): Promise<void> {
  const found = await statOf(flag, path)
  if (found?.isDirectory()) {
    throw new KpngError('unavailable', `${flag}: ${path} is a folder. Give the path of a file.`)
  }
  const written = found ? path : dirname(resolve(path))
  await access(written, constants.W_OK).catch((error) => {
    throw unusable(flag, found ? path : `the folder ${written}`, error)
  })
}

/** Throws if there is something at this path that is not a folder. */
export async function checkFolder(flag: string, path: string): Promise<void> {
  const found = await statOf(flag, path)
  if (found && !found.isDirectory()) {
    throw new KpngError('unavailable', `${flag}: ${path} is not a folder. Give another path.`)
  }
}

const statOf = (flag: string, path: string) =>
  stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw unusable(flag, path, error)
  })
