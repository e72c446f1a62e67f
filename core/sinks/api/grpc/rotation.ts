import { type Log, messageOf } from '@kpng/api'
import { loadTls, type TlsFiles, type TlsMaterial } from './tls.js'

export interface RotationOptions {
  readonly files: TlsFiles
  readonly current: TlsMaterial
  readonly everyMs: number
  readonly apply: (material: TlsMaterial) => void
  readonly log: Log
}

/**
 * Reads the TLS files again every now and then and applies what has changed, until the returned function is called. Reading beats
 * watching here: a mounted Secret is swapped as a link to another folder, and a minute's delay costs nothing.
 */
export function followRotation({ files, current, everyMs, apply, log }: RotationOptions): () => void {
  let known = current
  let stopped = false
  let timer: NodeJS.Timeout | undefined

  const check = async () => {
    try {
      const found = await loadTls(files)
      if (stopped || sameMaterial(found, known)) return
      apply(found)
      known = found
      log.info('TLS certificates were renewed: new connections use them', { certFile: files.certFile })
    } catch (error) {
      log.warn('The TLS files have changed and cannot be used: the old certificates stay in use', {
        error: messageOf(error),
      })
    }
  }
  const schedule = () => {
    timer = setTimeout(() => check().finally(() => stopped || schedule()), everyMs).unref()
  }
  schedule()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

const sameMaterial = (a: TlsMaterial, b: TlsMaterial) => a.key === b.key && a.cert === b.cert && a.ca === b.ca
