import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TlsFiles } from '../tls.js'

const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })

/** A certificate authority in a temporary folder, for tests on real TLS. */
export class CertificateAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'kpng-ca-'))
  readonly caFile = join(this.folder, 'ca.crt')
  readonly #keyFile = join(this.folder, 'ca.key')

  constructor(name = 'test CA') {
    openssl(
      'req',
      '-x509',
      ...curve,
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-keyout',
      this.#keyFile,
      '-out',
      this.caFile,
    )
  }

  /**
   * Issues a certificate for servers and clients alike. The name is its subject and its file name; `alternativeNames` are what a
   * server with it may be called.
   */
  issue(name: string, alternativeNames = 'DNS:localhost,IP:127.0.0.1,IP:::1'): TlsFiles {
    const keyFile = join(this.folder, `${name}.key`)
    const certFile = join(this.folder, `${name}.crt`)
    const requestFile = join(this.folder, `${name}.csr`)
    const extensionFile = join(this.folder, `${name}.ext`)
    writeFileSync(extensionFile, alternativeNames === '' ? '' : `subjectAltName=${alternativeNames}\n`)
    openssl('req', '-new', ...curve, '-subj', `/O=kpng/CN=${name}`, '-keyout', keyFile, '-out', requestFile)
    openssl(
      ...['x509', '-req', '-days', '2', '-in', requestFile, '-CA', this.caFile, '-CAkey', this.#keyFile],
      ...['-CAcreateserial', '-extfile', extensionFile, '-out', certFile],
    )
    return { keyFile, certFile, caFile: this.caFile }
  }

  /** Takes the folder away, and with it everything that was issued. */
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The contents of the files, as `tls.connect` and grpc-js take them. */
export const readPem = ({ keyFile, certFile, caFile }: TlsFiles) => ({
  key: readFileSync(keyFile),
  cert: readFileSync(certFile),
  ca: readFileSync(caFile),
})
