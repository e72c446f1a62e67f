import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Pair {
  readonly cert: string
  readonly key: string
}

/** A folder that is gone when the tests are over. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'kpng-kube-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Makes certificates with openssl, in a folder that it removes. */
export class Authority {
  readonly #folder = temporaryFolder()
  readonly #name: string
  readonly cert: string

  constructor(name = 'ca') {
    this.#name = name
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    this.#openssl('req', '-x509', ...curve, '-days', '2', '-subj', `/CN=${name}`, '-keyout', 'ca.key', '-out', 'ca.crt')
    this.cert = this.#read('ca.crt')
  }

  /** @param days negative: already expired */
  issue(commonName: string, { names = '', days = 1 }: { names?: string; days?: number } = {}): Pair {
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    const subject = ['-subj', `/O=system:masters/CN=${commonName}`]
    this.#openssl('req', '-new', ...curve, ...subject, '-keyout', 'leaf.key', '-out', 'leaf.csr')
    writeFileSync(join(this.#folder.path, 'ext'), names ? `subjectAltName=${names}\n` : 'basicConstraints=CA:false\n')
    const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', String(Math.floor(Math.random() * 1e9))]
    this.#openssl(
      'x509',
      '-req',
      '-in',
      'leaf.csr',
      ...signer,
      '-days',
      String(days),
      '-extfile',
      'ext',
      '-out',
      'leaf.crt',
    )
    return { cert: this.#read('leaf.crt'), key: this.#read('leaf.key') }
  }

  remove(): void {
    this.#folder.remove()
  }

  get name(): string {
    return this.#name
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder.path, file), 'utf8')
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.#folder.path, stdio: 'pipe' })
  }
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64')
