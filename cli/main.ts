import { readFileSync } from 'node:fs'
import { programName } from './self.js'

/** Exit codes: 0 done, 1 failed, 2 wrong usage; of a question 1 is a bad answer, and 3 is none. What only some commands need is loaded by those. */
export async function main(args: readonly string[], name = programName()): Promise<number> {
  if (name === 'kubectl-kpng') return await (await import('./kubectl-plugin.js')).kubectlPlugin(args)
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  if (args.length === 1 && (args[0] === '--version' || (args[0] === 'version' && name === 'kpng'))) {
    console.log(version)
    return 0
  }
  const { runCommandLine } = await import('./command-line.js')
  return await runCommandLine(args, name, version)
}
