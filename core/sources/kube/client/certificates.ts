import { readText } from './config.js'
import { type LoadingOptions, loadConfig } from './loading-rules.js'

/** Certificates as PEM, and where they are configured. */
export interface ConfiguredCertificates {
  readonly where: string
  readonly pem: string
}

/** The certificates that a connection would use: the CA of the server and that of the client. Never a key. */
export async function configuredCertificates(options: LoadingOptions): Promise<ConfiguredCertificates[]> {
  const { cluster, user } = await loadConfig(options)
  const sources = [cluster.certificateAuthority, user.clientCertificate].filter((source) => source !== undefined)
  return await Promise.all(sources.map(async (source) => ({ where: source.field, pem: await readText(source) })))
}
