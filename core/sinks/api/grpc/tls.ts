import { readFile } from 'node:fs/promises'
import { KpngError, messageOf } from '@kpng/api'
import { parseCertificates, parsePrivateKey } from '@kpng/api/node'

/** The files of mutual TLS, all in PEM: our key, our certificate (with its chain), and the CA that signs the other side's. */
export interface TlsFiles {
  readonly keyFile: string
  readonly certFile: string
  readonly caFile: string
}

/** Their contents, checked. */
export interface TlsMaterial {
  readonly key: string
  readonly cert: string
  readonly ca: string
}

const nameOf: Readonly<Record<keyof TlsFiles, string>> = {
  keyFile: 'the key',
  certFile: 'the certificate',
  caFile: 'the CA certificate',
}

/** All three files, or undefined when none is given: plain text. The error names those that are missing. */
export function tlsFilesOf(given: Partial<TlsFiles> = {}): TlsFiles | undefined {
  const { keyFile, certFile, caFile } = given
  if (keyFile && certFile && caFile) return { keyFile, certFile, caFile }
  if (!keyFile && !certFile && !caFile) return undefined
  const missing = (['keyFile', 'certFile', 'caFile'] as const)
    .filter((name) => !given[name])
    .map((name) => nameOf[name])
  throw new KpngError(
    'usage',
    `TLS is mutual and needs three files. Give ${missing.join(' and ')} too, or none of them.`,
  )
}

/** Reads and checks the three files. An error names the file at fault. */
export async function loadTls({ keyFile, certFile, caFile }: TlsFiles): Promise<TlsMaterial> {
  const [key, cert, ca] = await Promise.all([read(keyFile), read(certFile), read(caFile)])
  const privateKey = parsed(keyFile, 'private key', () => parsePrivateKey(key))
  const [own] = parsed(certFile, 'certificate', () => parseCertificates(cert))
  parsed(caFile, 'certificate', () => parseCertificates(ca))
  if (!own?.checkPrivateKey(privateKey)) {
    throw new KpngError(
      'invalid',
      `The key in ${keyFile} does not belong to the certificate in ${certFile}. Give the two that were made together.`,
    )
  }
  return { key, cert, ca }
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `Cannot read the TLS file ${file}: ${messageOf(error)}. Check its path and owner.`,
      { cause: error },
    )
  }
}

function parsed<T>(file: string, what: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new KpngError('invalid', `The file ${file} holds no usable ${what}: ${messageOf(error)}.`, { cause: error })
  }
}
