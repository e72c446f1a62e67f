// Where the API server is and who asks, with all names resolved. Whatever may rotate is kept as a path and read for each request.

/** PEM text, or the file that holds it. `field` says where it is from, for error messages. */
export type Material = { readonly field: string } & ({ readonly pem: string } | { readonly file: string })

export interface ClusterConfig {
  /** The URL of the API server; may have a path. */
  readonly server: string
  /** Where `server` is set, for error messages. */
  readonly serverField: string
  readonly tlsServerName: string | undefined
  readonly insecureSkipTlsVerify: boolean
  readonly certificateAuthority: Material | undefined
  readonly proxyUrl: string | undefined
}

export interface ExecConfig {
  /** Where it is from, for error messages. */
  readonly field: string
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly installHint: string | undefined
  readonly provideClusterInfo: boolean
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always'
  /** The cluster's `client.authentication.k8s.io/exec` extension, handed to the plugin as is. */
  readonly clusterExtension: unknown
}

export interface UserConfig {
  /** For error messages, for instance `user "admin" in /home/ada/.kube/config`. */
  readonly described: string
  readonly clientCertificate: Material | undefined
  readonly clientKey: Material | undefined
  readonly token: string | undefined
  readonly tokenFile: Material | undefined
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
