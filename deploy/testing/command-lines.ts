import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A command line of kpng that something in deploy/ runs. */
export interface CommandLine {
  readonly where: string
  readonly words: readonly string[]
}

/** The `ExecStart=` of a systemd unit, without what the administrator may add in a variable. */
export function ofUnit(folder: string, file: string): CommandLine[] {
  const starts = [...readFileSync(join(folder, file), 'utf8').matchAll(/^ExecStart=(.*)$/gm)].map(
    ([, line]) => line ?? '',
  )
  return starts.map((line) => ({
    where: file,
    words: line
      .split(/\s+/)
      .slice(1)
      .filter((word) => !word.startsWith('$')),
  }))
}

/** The lists called `$…Words` of a PowerShell script. What a parameter stands for does not matter to the parser. */
export function ofPowerShell(folder: string, file: string): CommandLine[] {
  const text = readFileSync(join(folder, file), 'utf8')
  return [...text.matchAll(/^\$(\w+Words) = @\((.*)\)$/gm)].map(([, name, list]) => ({
    where: `${file} ${name}`,
    words: (list ?? '').split(/,\s*/).map((word) => word.replace(/^['"]|['"]$/g, '').replace(/\$\w+/g, '1')),
  }))
}
