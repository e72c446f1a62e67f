import { writeFile } from 'node:fs/promises'
import { type Log, messageOf } from '@kpng/api'
import { rightsAdvice } from '@kpng/linux'

export interface OomScoreOptions {
  /** -1000 (never killed) to 1000; kube-proxy's is -999. */
  readonly value: number
  readonly log: Log
  /** Default: that of this process. */
  readonly path?: string
}

/** Tells the kernel how late to kill this process when memory runs out. Lowering the score needs CAP_SYS_RESOURCE. */
export async function applyOomScore({
  value,
  log,
  path = '/proc/self/oom_score_adj',
}: OomScoreOptions): Promise<boolean> {
  try {
    await writeFile(path, String(value), { flag: 'r+' })
    return true
  } catch (error) {
    const hint = rightsAdvice('CAP_SYS_RESOURCE')
    log.warn('Cannot set the OOM score; continuing without it', {
      ...{ path, value, error: messageOf(error) },
      hint: `${hint} In a container, oomScoreAdj of the container can set it.`,
    })
    return false
  }
}
