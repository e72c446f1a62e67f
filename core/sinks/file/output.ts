import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { open, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Writable } from 'node:stream'
import { fileAdvice, KpngError, messageOf } from '@kpng/api'

/** Where the state is written to. */
export interface Output {
  /** Whether a retry can succeed after a failure. */
  readonly canRecover: boolean
  write(parts: readonly string[]): Promise<void>
}

/** The output for a path. Rejects if nothing can be written there. */
export async function outputFor(path: string, standardOutput: Writable): Promise<Output> {
  if (path === '-' || path === '/dev/stdout') return streamOutput(standardOutput)
  const target = await existing(path)
  if (target?.isDirectory()) {
    throw new KpngError(
      'usage',
      `${path} is a folder. Give the name of the file to write, for instance ${join(path, 'state.yaml')}.`,
    )
  }
  // A device or a pipe is opened and written. A rename would replace it with a file.
  const isFile = target === undefined || target.isFile()
  if (isFile) await mustBeWritable(dirname(await finalPath(path)))
  return {
    canRecover: true,
    write: async (parts) => {
      try {
        await (isFile ? replaceFile(await finalPath(path), parts) : writeTo(path, 'w', parts))
      } catch (error) {
        throw new KpngError('unavailable', `${path} cannot be written: ${messageOf(error)}.`, { cause: error })
      }
    },
  }
}

async function existing(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined)
}

/** A link stays a link: its target is replaced. */
const finalPath = (path: string): Promise<string> => realpath(path).catch(() => path)

async function mustBeWritable(folder: string): Promise<void> {
  try {
    // Try it: only a write shows that a file system is read-only or that privileges were dropped.
    const probe = temporaryIn(folder)
    await (await open(probe, 'wx')).close()
    await rm(probe, { force: true })
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const what = missing
      ? 'does not exist. Create it, or choose another one.'
      : `cannot be written to (${messageOf(error)}). ${fileAdvice(error) || 'Choose another one.'}`
    throw new KpngError('unavailable', `The folder ${folder} ${what}`, { cause: error })
  }
}

/** A hidden name, so that programs that read the folder skip it. */
const temporaryIn = (folder: string, name = 'kpng') => join(folder, `.${name}.${randomBytes(6).toString('hex')}.tmp`)

/** Readers see the whole old file or the whole new one, never a part. */
async function replaceFile(path: string, parts: readonly string[]): Promise<void> {
  const temporary = temporaryIn(dirname(path), basename(path))
  try {
    await writeTo(temporary, 'wx', parts)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function writeTo(path: string, flags: string, parts: readonly string[]): Promise<void> {
  const handle = await open(path, flags, 0o644)
  try {
    await handle.writeFile(parts.join(''))
    // Without it, a crash of the machine could leave an empty file under the new name. Devices and pipes cannot be synced.
    if (flags === 'wx') await handle.sync()
  } finally {
    await handle.close()
  }
}

function streamOutput(stream: Writable): Output {
  let first = true
  return {
    canRecover: false,
    write: (parts) =>
      new Promise((resolve, reject) => {
        const fail = (error: Error) =>
          reject(
            new KpngError('unavailable', `Standard output cannot be written: ${messageOf(error)}.`, { cause: error }),
          )
        stream.once('error', fail)
        stream.write(`${first ? '' : '---\n'}${parts.join('')}`, (error) => {
          if (error) return fail(error)
          stream.removeListener('error', fail)
          resolve()
        })
        first = false
      }),
  }
}
