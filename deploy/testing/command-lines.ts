import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A command line of kpng that something in deploy/ or docs/ runs. */
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

/** As a shell splits a line, as far as quotes go. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, bare]) => single ?? double ?? bare ?? '')

/** The lines of a guide's code blocks that run kpng: by itself, after a prompt or npx, or in a container, after `--`. */
export function ofGuide(folder: string, file: string): CommandLine[] {
  const blocks = [...readFileSync(join(folder, file), 'utf8').matchAll(/^ *```\w*\n([\s\S]*?)^ *```/gm)]
  const lines = blocks.flatMap(([, block]) => (block ?? '').replace(/\\\n\s*/g, ' ').split('\n'))
  return lines.flatMap((line) => {
    const found = /^ *(?:.* -- |\$ |sudo |npx )*kpng(-json|-callout)? (?!\w+(?::| ·))(.*)$/.exec(
      line.replace(/\s+#.*$/, '').replace(/\s+\|.*$/, ''),
    )
    if (!found) return []
    const short = { '-json': ['local', 'to-json'], '-callout': ['local', 'to-callout'] }[found[1] ?? ''] ?? []
    return [{ where: `${file}: ${line.trim()}`, words: [...short, ...wordsOf(found[2] ?? '')] }]
  })
}
