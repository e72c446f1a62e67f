import { KpngError } from '@kpng/api'
import { type ProgramResult, runProgram } from '@kpng/linux'

/** If nft takes longer, it hangs. Long input gets 10 seconds per megabyte, many times what nft needs. */
const limitMsFor = (input: string): number => 30_000 + input.length / 100

/** The nft command. */
export class NftCommand {
  readonly #command: string

  constructor(command: string) {
    this.#command = command
  }

  /** Runs a text as one transaction. */
  async apply(text: string): Promise<void> {
    const { code, errors } = await this.#run(['-f', '-'], text)
    if (code === 0) return
    const reason = firstSentence(errors) || `exit code ${code}`
    throw new KpngError('refused', `nft refused a transaction: ${reason}. Nothing was changed.`)
  }

  /** Why nft or the kernel would refuse a text; undefined if they would accept it. */
  async check(text: string): Promise<string | undefined> {
    const { code, errors } = await this.#run(['-c', '-f', '-'], text)
    return code === 0 && errors === '' ? undefined : firstSentence(errors) || `exit code ${code}`
  }

  async version(): Promise<string> {
    const { output } = await this.#run(['--version'])
    return /v(\d+(?:\.\d+)+)/.exec(output)?.[1] ?? 'unknown'
  }

  /** Every table of this network namespace. */
  async tables(): Promise<{ readonly family: string; readonly name: string }[]> {
    const { code, output, errors } = await this.#run(['list', 'tables'])
    if (code !== 0) throw cannotList(errors, code)
    return [...output.matchAll(/^table (\S+) (\S+)$/gm)].map(([, family = '', name = '']) => ({ family, name }))
  }

  #run(args: readonly string[], input = ''): Promise<ProgramResult> {
    return runProgram(this.#command, args, { input, limitMs: limitMsFor(input) })
  }
}

function cannotList(errors: string, code: number): KpngError {
  const next = /not permitted|permission denied/i.test(errors)
    ? 'Run kpng as root, or give it the capability CAP_NET_ADMIN.'
    : 'Try `nft list tables` on this machine.'
  const reason = firstSentence(errors) || `exit code ${code}`
  return new KpngError('unavailable', `nft cannot list the tables: ${reason}. ${next}`)
}

const firstSentence = (errors: string): string => {
  const line = errors.split('\n').find((text) => text.includes('Error')) ?? errors.split('\n')[0] ?? ''
  return line.replace(/^.*?Error:\s*/, '').slice(0, 300)
}
