import { basename } from 'node:path'

/** The command line that starts this program again. */
let command: readonly string[] = [process.execPath, process.argv[1] as string]

export const selfCommand = (): readonly string[] => command

/** Called by the single-file executable, which needs no script. */
export function isSingleFile(): void {
  command = [process.execPath]
}

const programNames = ['kpng', 'kpng-json', 'kpng-callout', 'kubectl-kpng']

/**
 * The name that this program was called by, so that `kpng-json` may be a link to it, or a copy.
 * @param path the script; in an executable, how it was called, not the file that a link leads to
 */
export function programName(path = process.argv[1] ?? ''): string {
  const name = basename(path.replaceAll('\\', '/')).replace(/\.(exe|c?js)$/i, '')
  return programNames.includes(name) ? name : 'kpng'
}
