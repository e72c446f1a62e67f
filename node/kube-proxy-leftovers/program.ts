import { KpngError, messageOf } from '@kpng/api'
import { isMissingProgram, outputOf } from '@kpng/linux'

/** Runs a program and returns what it printed; undefined if it is not installed. Rejects if it fails. */
export type RunProgram = (program: string, args: readonly string[], input?: string) => Promise<string | undefined>

export const runProgram: RunProgram = async (program, args, input = '') => {
  // The messages of programs are matched here and by callers, so they must be in English.
  const env = { ...process.env, LC_ALL: 'C' }
  try {
    return await outputOf(program, args, { input, limitMs: 60_000, env })
  } catch (error) {
    if (isMissingProgram(error)) return undefined
    if (!/not supported/i.test(messageOf(error))) throw error
    throw new KpngError('unsupported', messageOf(error), { cause: error })
  }
}
