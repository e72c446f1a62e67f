import { KpngError } from '@kpng/api'
import {
  anonymous,
  type ClusterConfig,
  type ConnectionConfig,
  clusterAt,
  type ExecConfig,
  givenServer,
  type TextOrFile,
  type UserConfig,
} from './config.js'
import {
  type ClusterFields,
  type ContextFields,
  type Entry,
  type ExecFields,
  type Kubeconfig,
  pathFrom,
  type UserFields,
} from './kubeconfig.js'

/** One context of a kubeconfig: its cluster and its user, with absolute paths. */
export function resolveContext(config: Kubeconfig, wanted?: { context?: string; server?: string }): ConnectionConfig {
  const context = contextOf(config, wanted?.context)
  const { cluster: clusterName, user: userName } = context.fields
  const where = `context "${context.name}" in ${context.file}`
  if (!clusterName && !wanted?.server) {
    throw new KpngError('invalid', `The ${where} has no cluster. Set its field cluster, or give the URL of the server.`)
  }
  const cluster = clusterName ? referred(config.clusters, 'cluster', clusterName, where) : undefined
  const user = userName ? referred(config.users, 'user', userName, where) : undefined
  return {
    described: `context "${context.name}" of ${context.file}`,
    cluster: clusterOf(cluster, wanted?.server),
    user: user ? userOf(user, cluster) : anonymous,
  }
}

function contextOf(config: Kubeconfig, wanted: string | undefined): Entry<ContextFields> {
  const files = config.files.join(', ')
  const name = wanted ?? config.currentContext
  const known = [...config.contexts.keys()]
  const choices = known.length > 0 ? `Choose a context: ${known.join(', ')}` : 'It has no contexts; give another file'
  if (name === undefined) {
    throw new KpngError('invalid', `The kubeconfig ${files} does not set current-context. ${choices}.`)
  }
  const found = config.contexts.get(name)
  if (found) return found
  const what = wanted === undefined ? `its current-context "${name}"` : `a context "${name}"`
  throw new KpngError('invalid', `The kubeconfig ${files} does not have ${what}. ${choices}.`)
}

function referred<T>(entries: ReadonlyMap<string, Entry<T>>, kind: string, name: string, where: string): Entry<T> {
  const found = entries.get(name)
  if (found) return found
  const known = [...entries.keys()].join(', ') || 'none'
  throw new KpngError(
    'invalid',
    `The ${where} names the ${kind} "${name}", which does not exist. Known ${kind}s: ${known}. Correct its field ${kind}.`,
  )
}

function clusterOf(entry: Entry<ClusterFields> | undefined, server: string | undefined): ClusterConfig {
  if (!entry) return clusterAt(server ?? '', givenServer)
  const { fields } = entry
  const where = `cluster "${entry.name}" in ${entry.file}`
  const insecure = fields['insecure-skip-tls-verify'] ?? false
  const ca = textOrFile(entry, where, 'certificate-authority', fields)
  if (insecure && ca) {
    throw new KpngError(
      'invalid',
      `The ${where} sets both insecure-skip-tls-verify and certificate-authority. Remove the first (it is unsafe).`,
    )
  }
  return {
    ...clusterAt(server ?? fields.server ?? '', server === undefined ? `server of ${where}` : givenServer),
    tlsServerName: fields['tls-server-name'] || undefined,
    insecureSkipTlsVerify: insecure,
    certificateAuthority: ca,
    proxyUrl: fields['proxy-url'] || undefined,
  }
}

function userOf(entry: Entry<UserFields>, cluster: Entry<ClusterFields> | undefined): UserConfig {
  const { fields, file } = entry
  const where = `user "${entry.name}" in ${file}`
  if (fields['auth-provider'] != null) {
    throw new KpngError(
      'unsupported',
      `The ${where} uses auth-provider, which Kubernetes removed in 1.26. Use the exec plugin of your cloud instead.`,
    )
  }
  const clientCertificate = textOrFile(entry, where, 'client-certificate', fields)
  const clientKey = textOrFile(entry, where, 'client-key', fields)
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    const [has, lacks] = clientKey ? ['client-key', 'client-certificate'] : ['client-certificate', 'client-key']
    throw new KpngError('invalid', `The ${where} has ${has} but no ${lacks}. Add ${lacks} or ${lacks}-data.`)
  }
  return {
    described: where,
    clientCertificate,
    clientKey,
    token: fields.token || undefined,
    tokenFile: fields.tokenFile
      ? { field: `tokenFile of ${where}`, file: pathFrom(file, fields.tokenFile) }
      : undefined,
    basic: fields.username ? { username: fields.username, password: fields.password ?? '' } : undefined,
    impersonate: fields.as
      ? { user: fields.as, uid: fields['as-uid'] ?? '', groups: fields['as-groups'] ?? [] }
      : undefined,
    exec: fields.exec ? execConfigOf(fields.exec, where, file, cluster?.fields) : undefined,
  }
}

type TextField = 'certificate-authority' | 'client-certificate' | 'client-key'
type TextFields = { readonly [name in TextField | `${TextField}-data`]?: string | null | undefined }

/** `x-data` (base64) counts before `x` (a path), as in client-go. */
function textOrFile(entry: Entry<unknown>, where: string, name: TextField, fields: TextFields): TextOrFile | undefined {
  const data = fields[`${name}-data`]
  if (data) return { field: `${name}-data of ${where}`, text: decodeBase64(data, `${name}-data of ${where}`) }
  const path = fields[name]
  return path ? { field: `${name} of ${where}`, file: pathFrom(entry.file, path) } : undefined
}

function decodeBase64(text: string, field: string): string {
  const compact = text.replace(/\s+/g, '')
  if (compact.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(compact)) {
    return Buffer.from(compact, 'base64').toString('utf8')
  }
  throw new KpngError('invalid', `The ${field} is not base64. Encode the PEM file with "base64 -w0", or give its path.`)
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const interactiveModes = ['Never', 'IfAvailable', 'Always'] as const

/** Checks an `exec` entry by the rules of client-go. */
function execConfigOf(fields: ExecFields, where: string, file: string, cluster: ClusterFields | undefined): ExecConfig {
  const apiVersion = fields.apiVersion ?? ''
  if (!execVersions.includes(apiVersion)) {
    throw new KpngError(
      'invalid',
      `The exec.apiVersion of ${where} is "${apiVersion}". It must be ${execVersions.join(' or ')}; update the plugin if it is older.`,
    )
  }
  if (!fields.command) {
    throw new KpngError('invalid', `The exec.command of ${where} is empty. Set it to the plugin's program.`)
  }
  // v1beta1 did not have this field at first, and then meant IfAvailable; v1 requires it.
  const given = fields.interactiveMode ?? (apiVersion.endsWith('v1beta1') ? 'IfAvailable' : '')
  const interactiveMode = interactiveModes.find((mode) => mode === given)
  if (!interactiveMode) {
    throw new KpngError(
      'invalid',
      `The exec.interactiveMode of ${where} must be one of: ${interactiveModes.join(', ')}.`,
    )
  }
  const extension = cluster?.extensions?.find(({ name }) => name === 'client.authentication.k8s.io/exec')
  return {
    field: `exec of ${where}`,
    apiVersion,
    // A name without a slash is looked up in PATH; otherwise it is a path.
    command: /[/\\]/.test(fields.command) ? pathFrom(file, fields.command) : fields.command,
    args: fields.args ?? [],
    env: Object.fromEntries((fields.env ?? []).map(({ name, value }) => [name, value ?? ''])),
    installHint: fields.installHint?.trim() || undefined,
    provideClusterInfo: fields.provideClusterInfo ?? false,
    interactiveMode,
    clusterExtension: extension?.extension ?? null,
  }
}
