import { outputOf } from '@kpng/linux'

/** Runs a program and gives back what it printed. Rejects if it fails. */
export type RunProgram = (program: string, args: readonly string[], input?: string) => Promise<string>

export const runProgram: RunProgram = (program, args, input = '') => outputOf(program, args, { input, limitMs: 30_000 })
