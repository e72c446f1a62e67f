import { KpngError, messageOf } from '@kpng/api'
import { parseCertificates, parsePrivateKey } from '@kpng/api/node'
import { type ConnectionConfig, readText, type TextOrFile, type UserConfig } from './config.js'
import { type ExecCredential, type ExecOptions, runExecPlugin } from './exec.js'

/** What a request needs to be let in: headers, and the certificates of the connection that it uses. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** A token that expires within this time is not used for a new request. */
const expiryLeewayMs = 10_000

/**
 * The credentials of one user. Files are read for each request (there are few: a watch lasts minutes), so a rotated token or
 * certificate is used from the next request on, without timers. The answer of a plugin is kept until it expires or is refused.
 */
export class CredentialReader {
  readonly #config: ConnectionConfig
  readonly #exec: ExecOptions
  #credential: Promise<ExecCredential> | undefined

  constructor(config: ConnectionConfig, exec: ExecOptions) {
    this.#config = config
    this.#exec = exec
  }

  async read(): Promise<Credentials> {
    const { cluster, user } = this.#config
    const ca = cluster.certificateAuthority && (await readText(cluster.certificateAuthority))
    if (ca !== undefined) certificatesIn(ca, cluster.certificateAuthority as TextOrFile)
    const plugin = user.exec && (await this.#pluginCredential())
    const certificate = (await clientCertificateOf(user)) ?? plugin?.certificate
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
      const of = `of the plugin in ${user.exec.field}`
      checkPair(
        { text: cert, field: `clientCertificateData ${of}` },
        cert,
        { text: key, field: `clientKeyData ${of}` },
        key,
      )
    }
    return credential
  }
}

async function clientCertificateOf({ clientCertificate, clientKey }: UserConfig) {
  if (!clientCertificate || !clientKey) return undefined
  const [cert, key] = await Promise.all([readText(clientCertificate), readText(clientKey)])
  checkPair(clientCertificate, cert, clientKey, key)
  return { cert, key }
}

async function authorizationOf(user: UserConfig, plugin: ExecCredential | undefined): Promise<string | undefined> {
  const token = user.tokenFile ? (await readText(user.tokenFile)).trim() : (user.token ?? plugin?.token)
  if (user.tokenFile && token === '') {
    throw new KpngError(
      'invalid',
      `The ${user.tokenFile.field} is an empty file. Wait for it to be written, or correct it.`,
    )
  }
  if (token) {
    // A line feed would otherwise fail deep inside the HTTP client, with the token in the message.
    if (/[^\x21-\x7e]/.test(token)) {
      throw new KpngError(
        'invalid',
        `The token of ${user.described} contains spaces or control characters. Correct it.`,
      )
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

const placeOf = (source: TextOrFile): string => ('file' in source ? `${source.field} (${source.file})` : source.field)

function certificatesIn(pem: string, source: TextOrFile) {
  try {
    return parseCertificates(pem)
  } catch (error) {
    throw new KpngError('invalid', `The ${placeOf(source)} is not a usable certificate: ${messageOf(error)}.`)
  }
}

function keyIn(pem: string, source: TextOrFile) {
  try {
    return parsePrivateKey(pem)
  } catch (error) {
    throw new KpngError('invalid', `The ${placeOf(source)} is not a usable private key: ${messageOf(error)}.`)
  }
}

/** Checks a client certificate and its key: each can be used, they belong together, and the certificate is valid now. */
function checkPair(certificate: TextOrFile, cert: string, privateKey: TextOrFile, key: string): void {
  const [own] = certificatesIn(cert, certificate)
  if (!own?.checkPrivateKey(keyIn(key, privateKey))) {
    throw new KpngError(
      'invalid',
      `The ${placeOf(privateKey)} does not belong to the ${placeOf(certificate)}. Give the two that were made together.`,
    )
  }
  const [start, end] = [Date.parse(own.validFrom), Date.parse(own.validTo)]
  if (end <= Date.now()) {
    throw new KpngError(
      'invalid',
      `The client certificate in the ${placeOf(certificate)} expired at ${new Date(end).toISOString()}. Get a new one.`,
    )
  }
  if (start > Date.now()) {
    throw new KpngError(
      'invalid',
      `The client certificate in the ${placeOf(certificate)} is valid only from ${new Date(start).toISOString()} on. ` +
        `Check the clock of this machine.`,
    )
  }
}
