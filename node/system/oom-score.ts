import { readFile, writeFile } from 'node:fs/promises'
import { type Log, messageOf } from '@kpng/api'
import { rightsAdvice } from '@kpng/linux'

export interface OomScoreOptions {
  /** -1000 (never killed) to 1000; kube-proxy's is -999. */
  readonly value: number
  readonly log: Log
  /** Default: that of this process. */
  readonly path?: string
}

/** From here on, the kernel kills nearly everything else first. The kubelet gives -997 to pods that are critical for their node. */
const lateEnough = -900

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
    const now = Number(await readFile(path, 'utf8').catch(() => 'unknown'))
    if (now <= lateEnough && value <= lateEnough) {
      log.detail(1, 'Left the OOM score as it is: low enough, and it may not be changed', { path, now, wanted: value })
      return false
    }
    const hint = rightsAdvice('CAP_SYS_RESOURCE')
    log.warn('Cannot set the OOM score; continuing without it', {
      ...{ path, value, error: messageOf(error) },
      hint: `${hint} In a container, oomScoreAdj of the container can set it.`,
    })
    return false
  }
}
