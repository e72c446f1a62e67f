import { readFileSync } from 'node:fs'
import { KpngError, messageOf } from '@kpng/api'

/** PEM files. `caFile` alone checks the server; a server of kpng wants a certificate of its CA from the client too. */
export interface TlsFiles {
  /** The client's private key. Needs `certFile`. Default: the client shows no certificate. */
  readonly keyFile?: string
  /** The client's certificate, with intermediates. Needs `keyFile`. */
  readonly certFile?: string
  /** The authority that the server's certificate must come from. Default: the public authorities that gRPC knows. */
  readonly caFile?: string
}

export interface TlsMaterial {
  /** The content of `keyFile`; null without one. */
  readonly key: Buffer | null
  /** The content of `certFile`; null without one. */
  readonly cert: Buffer | null
  /** The content of `caFile`; null without one. */
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
