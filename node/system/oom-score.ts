import { writeFile } from 'node:fs/promises'
import { type Log, messageOf } from '@kpng/api'

export interface OomScoreOptions {
  /** -1000 (never killed) to 1000; kube-proxy's is -999. */
  readonly value: number
  readonly log: Log
  /** Default: that of this process. */
  readonly path?: string
}

/** Says to the kernel how late this process is to be killed when memory runs out. Lowering it needs CAP_SYS_RESOURCE. */
export async function applyOomScore({
  value,
  log,
  path = '/proc/self/oom_score_adj',
}: OomScoreOptions): Promise<boolean> {
  try {
    await writeFile(path, String(value), { flag: 'r+' })
    return true
  } catch (error) {
    log.warn(
      'Cannot set the OOM score, and goes on without. It needs CAP_SYS_RESOURCE, or oomScoreAdj of the container',
      {
        path,
        value,
        error: messageOf(error),
      },
    )
    return false
  }
}
