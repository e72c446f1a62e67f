import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** The files to read, sorted, each with what tells one version of it from another. */
export type Listing = ReadonlyMap<string, string>

/**
 * The file itself, or the YAML and JSON files of a folder: hidden ones are left out (editors and ConfigMap volumes keep theirs so),
 * folders inside it too. Links are followed. Throws when the path is not there.
 */
export async function listFiles(path: string): Promise<Listing> {
  const version = await versionOf(path)
  if (version !== undefined) return new Map([[path, version]])
  const names = (await readdir(path)).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name)).sort()
  const files = new Map<string, string>()
  for (const name of names) {
    const file = join(path, name)
    // A file that went since the folder was read, or a link that leads nowhere, is not there.
    const found = await versionOf(file).catch(() => undefined)
    if (found !== undefined) files.set(file, found)
  }
  return files
}

/** Undefined for a folder. */
export async function versionOf(file: string): Promise<string | undefined> {
  const stats = await stat(file, { bigint: true })
  return stats.isDirectory() ? undefined : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`
}

export const sameListing = (a: Listing | undefined, b: Listing | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.size === b.size &&
    [...a].every(([file, version]) => b.get(file) === version))
