import { readFileSync } from 'node:fs'
import { KpngError, messageOf } from '@kpng/api'

/** PEM files. `caFile` alone checks the server; a server of kpng wants a certificate of its CA from the client too. */
export interface TlsFiles {
  readonly keyFile?: string
  readonly certFile?: string
  readonly caFile?: string
}

export interface TlsMaterial {
  readonly key: Buffer | null
  readonly cert: Buffer | null
  readonly ca: Buffer | null
}

/** Reads the files anew at each call, so that a rotated certificate is used from the next connection on. */
export function readTlsFiles({ keyFile, certFile, caFile }: TlsFiles): TlsMaterial {
  if ((keyFile === undefined) !== (certFile === undefined)) {
    const [given, missing] = keyFile ? ['key', 'certificate'] : ['certificate', 'key']
    throw new KpngError('usage', `A TLS ${given} was given without its ${missing}. Give both, or neither.`)
  }
  return { key: read('TLS key', keyFile), cert: read('TLS certificate', certFile), ca: read('TLS CA', caFile) }
}

function read(what: string, path: string | undefined): Buffer | null {
  if (path === undefined) return null
  try {
    return readFileSync(path)
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `The ${what} file ${path} cannot be read: ${messageOf(error)}. Check that it is a file that this program may read.`,
      { cause: error },
    )
  }
}
