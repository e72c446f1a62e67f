/** What starts this command again. */
let command: readonly string[] = [process.execPath, process.argv[1] as string]

export const selfCommand = (): readonly string[] => command

/** Told by a single-file executable, which needs no script beside it. */
export function isSingleFile(): void {
  command = [process.execPath]
}
