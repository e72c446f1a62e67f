import { KpngError } from '@kpng/api'
import type { ConnectionConfig, UserConfig } from './config.js'
import { type ExecCredential, type ExecOptions, runExecPlugin } from './exec.js'
import { checkClientCertificate, readCertificateAuthority, readClientCertificate, readMaterial } from './material.js'

/** What a request needs to be let in: headers, and the TLS material of the connection it goes over. */
export interface Identity {
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** A token that ends within this time is not worth starting a request with. */
const expiryLeewayMs = 10_000

/**
 * Who asks. Files are read for each request (there are few: a watch lasts minutes), so a rotated token or certificate is
 * used from the next request on, without timers. A plugin's answer is kept until it expires or is refused.
 */
export class IdentityReader {
  readonly #config: ConnectionConfig
  readonly #exec: ExecOptions
  #credential: Promise<ExecCredential> | undefined

  constructor(config: ConnectionConfig, exec: ExecOptions) {
    this.#config = config
    this.#exec = exec
  }

  async read(): Promise<Identity> {
    const { cluster, user } = this.#config
    const ca = cluster.certificateAuthority && (await readCertificateAuthority(cluster.certificateAuthority))
    const plugin = user.exec && (await this.#pluginCredential())
    const own =
      user.clientCertificate && user.clientKey
        ? await readClientCertificate(user.clientCertificate, user.clientKey)
        : undefined
    const certificate = own ?? plugin?.certificate
    const authorization = await authorizationOf(user, plugin)
    return {
      headers: { ...(authorization && { authorization }), ...impersonation(user) },
      ca,
      cert: certificate?.cert,
      key: certificate?.key,
    }
  }

  async #pluginCredential(): Promise<ExecCredential> {
    // Several requests at once share one run.
    this.#credential ??= this.#start()
    const current = this.#credential
    const known = await current
    if (known.expiresAtMs === undefined || known.expiresAtMs - expiryLeewayMs > Date.now()) return known
    if (this.#credential === current || !this.#credential) this.#credential = this.#start()
    return this.#credential
  }

  #start(): Promise<ExecCredential> {
    const running = this.#run()
    running.catch(() => {
      if (this.#credential === running) this.#credential = undefined
    })
    return running
  }

  async #run(): Promise<ExecCredential> {
    const { cluster, user } = this.#config
    if (!user.exec) throw new KpngError('usage', `The ${user.described} has no exec plugin.`)
    const credential = await runExecPlugin(user.exec, cluster, this.#exec)
    if (credential.certificate) {
      const { cert, key } = credential.certificate
      const field = (name: string) => ({ field: `${name} of the plugin in ${user.exec?.field}`, pem: '' })
      checkClientCertificate(cert, field('clientCertificateData'), key, field('clientKeyData'), Date.now())
    }
    return credential
  }
}

async function authorizationOf(user: UserConfig, plugin: ExecCredential | undefined): Promise<string | undefined> {
  const token = user.tokenFile ? (await readMaterial(user.tokenFile)).trim() : (user.token ?? plugin?.token)
  if (user.tokenFile && token === '') {
    throw new KpngError(
      'invalid',
      `The ${user.tokenFile.field} is an empty file. Wait for it to be written, or correct it.`,
    )
  }
  if (token) {
    // A line feed here would otherwise fail deep inside the HTTP client, with the token in the message.
    if (/[^\x21-\x7e]/.test(token)) {
      throw new KpngError('invalid', `The token of ${user.described} holds spaces or control characters. Correct it.`)
    }
    return `Bearer ${token}`
  }
  if (!user.basic) return undefined
  return `Basic ${Buffer.from(`${user.basic.username}:${user.basic.password}`).toString('base64')}`
}

function impersonation({ impersonate }: UserConfig): Record<string, string | string[]> {
  if (!impersonate) return {}
  return {
    'impersonate-user': impersonate.user,
    ...(impersonate.uid && { 'impersonate-uid': impersonate.uid }),
    ...(impersonate.groups.length > 0 && { 'impersonate-group': [...impersonate.groups] }),
  }
}
