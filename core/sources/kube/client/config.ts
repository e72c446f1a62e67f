import { readFile } from 'node:fs/promises'
import { KpngError, messageOf } from '@kpng/api'

// Where the API server is and who asks, with all names resolved. What may rotate is kept as a path and read for each request.

/** A text, or the file that holds it. `field` says where it is configured, for error messages. */
export type TextOrFile = { readonly field: string } & ({ readonly text: string } | { readonly file: string })

export interface ClusterConfig {
  /** The URL of the API server; may have a path. */
  readonly server: string
  /** Where `server` is configured, for error messages. */
  readonly serverField: string
  readonly tlsServerName: string | undefined
  readonly insecureSkipTlsVerify: boolean
  readonly certificateAuthority: TextOrFile | undefined
  readonly proxyUrl: string | undefined
}

export interface ExecConfig {
  /** Where it is configured, for error messages. */
  readonly field: string
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly installHint: string | undefined
  readonly provideClusterInfo: boolean
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always'
  /** The cluster's `client.authentication.k8s.io/exec` extension, passed to the plugin unchanged. */
  readonly clusterExtension: unknown
}

export interface UserConfig {
  /** For error messages, for instance `user "admin" in /home/ada/.kube/config`. */
  readonly described: string
  readonly clientCertificate: TextOrFile | undefined
  readonly clientKey: TextOrFile | undefined
  readonly token: string | undefined
  readonly tokenFile: { readonly field: string; readonly file: string } | undefined
  readonly basic: { readonly username: string; readonly password: string } | undefined
  readonly impersonate: { readonly user: string; readonly uid: string; readonly groups: readonly string[] } | undefined
  readonly exec: ExecConfig | undefined
}

export interface ConnectionConfig {
  /** For error messages and logs, for instance `context "prod" of /home/ada/.kube/config`. */
  readonly described: string
  readonly cluster: ClusterConfig
  readonly user: UserConfig
}

export const anonymous: UserConfig = {
  described: 'nobody (no credentials)',
  clientCertificate: undefined,
  clientKey: undefined,
  token: undefined,
  tokenFile: undefined,
  basic: undefined,
  impersonate: undefined,
  exec: undefined,
}

/** The text of a certificate, key or token. Files are read each time, because they rotate. */
export async function readText(source: TextOrFile): Promise<string> {
  if ('text' in source) return source.text
  try {
    return await readFile(source.file, 'utf8')
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `Cannot read ${source.file}, the ${source.field}: ${messageOf(error)}. Check its path and owner.`,
      { cause: error },
    )
  }
}

/** A cluster of which only the server is known. */
export const clusterAt = (server: string, serverField: string): ClusterConfig => ({
  server: checkServer(server, serverField),
  serverField,
  tlsServerName: undefined,
  insecureSkipTlsVerify: false,
  certificateAuthority: undefined,
  proxyUrl: undefined,
})

/** The `serverField` of a server that the caller gave. */
export const givenServer = 'given server URL'

/** The server's URL without a slash at its end. Like kubectl, it takes `host:port` alone for http. */
export function checkServer(server: string, field: string): string {
  const text = server.trim()
  if (text === '') {
    throw new KpngError(
      'invalid',
      `The ${field} is empty. Set it to the URL of the API server, like https://10.0.0.1:6443.`,
    )
  }
  const url = parseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw new KpngError('invalid', `The ${field} is not an http or https URL. Write it like https://10.0.0.1:6443.`)
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new KpngError(
      'invalid',
      `The ${field} must not contain a user, a query or a fragment. Write it like https://host:port.`,
    )
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/** A proxy's URL, or an error that says which proxies can be used. */
export function checkProxyUrl(proxyUrl: string, field: string): URL {
  const url = parseUrl(proxyUrl)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  if (url?.protocol.startsWith('socks')) {
    throw new KpngError(
      'unsupported',
      `The ${field} is a SOCKS proxy, which kpng cannot use. Give an http or https proxy, or reach the server directly.`,
    )
  }
  throw new KpngError(
    'invalid',
    `The ${field} is not a URL of an http or https proxy. Write it like http://proxy:3128.`,
  )
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
