/** The command line that starts this program again. */
let command: readonly string[] = [process.execPath, process.argv[1] as string]

export const selfCommand = (): readonly string[] => command

/** Called by the single-file executable, which needs no script. */
export function isSingleFile(): void {
  command = [process.execPath]
}
