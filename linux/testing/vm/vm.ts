import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { KpngError } from '@kpng/api'
import { runProgram } from '../../program.js'

// A VM with a kernel that has what that of this machine may lack, such as SCTP and IPVS. The programs `build`, `run` and `init` beside
// this file make it, boot it, and are what is in it. Only for tests of this checkout.

const program = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** A build takes seconds. It takes longer only if the network is slow. */
const buildLimitMs = 180_000

/**
 * Builds the VM unless it is there. Returns why it cannot be had, or undefined if it can. The reason is printed, so that nobody takes
 * a skipped test for one that passed. Synchronous, because it decides which tests are defined. With `KPNG_NO_VM`, a reason, nothing is
 * tried.
 */
export function whyNoVm(suite: string): string | undefined {
  const why = process.env.KPNG_NO_VM || whyNotBuilt()
  if (why !== undefined) console.warn(`SKIPPED: ${suite}: ${why}`)
  return why
}

function whyNotBuilt(): string | undefined {
  const { status, stderr, error } = spawnSync(program('build'), { encoding: 'utf8', timeout: buildLimitMs })
  if (status === 0) return undefined
  return (stderr ?? '').trim().split('\n').at(-1) || error?.message || `build ended with ${status}`
}

export interface VmOptions {
  /** A command that takes longer is stopped with its VM, and the call fails. Without KVM, everything takes 10 to 20 times as long. */
  readonly limitMs: number
  /** The folder in which the command runs. It is that of this machine; what is written there is lost. Default: the checkout. */
  readonly folder?: string
}

/**
 * Boots the VM and runs a command in it, as root. If the command fails, the call still resolves: check `code`. Rejects if the VM
 * does not boot or takes too long.
 */
export async function runInVm(
  command: readonly string[],
  { limitMs, folder = program('../../..') }: VmOptions,
): Promise<{ code: number; output: string }> {
  const seconds = Math.ceil(limitMs / 1000)
  const { code, output, errors } = await runProgram(
    'env',
    ['-C', folder, program('run'), '-t', `${seconds}`, ...command],
    // `run` keeps the time by itself, with an error that says more.
    { limitMs: limitMs + buildLimitMs },
  )
  if (code === 124 || code === 125)
    throw new KpngError('unavailable', `${errors}\nIt printed last:\n${output.slice(-2000)}`)
  return { code, output }
}
