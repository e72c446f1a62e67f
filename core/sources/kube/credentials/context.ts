import { KpngError } from '@kpng/api'
import { anonymous, type ClusterConfig, type ConnectionConfig, type Material, type UserConfig } from './config.js'
import { execConfigOf } from './exec-config.js'
import {
  type ClusterFields,
  type ContextFields,
  type Entry,
  type Kubeconfig,
  pathFrom,
  type UserFields,
} from './kubeconfig.js'
import { checkServer } from './server-url.js'

/** What one context of a kubeconfig says: its cluster and its user, with every path made absolute. */
export function resolveContext(config: Kubeconfig, wanted?: { context?: string; server?: string }): ConnectionConfig {
  const context = contextOf(config, wanted?.context)
  const { cluster: clusterName, user: userName } = context.fields
  const where = `context "${context.name}" in ${context.file}`
  if (!clusterName && !wanted?.server) {
    throw new KpngError('invalid', `The ${where} has no cluster. Set its field cluster, or give --server.`)
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
  const choices = known.length > 0 ? `one of: ${known.join(', ')}` : 'a file that has one; there is none here'
  if (name === undefined) {
    throw new KpngError('invalid', `The kubeconfig ${files} sets no current-context. Give --context, ${choices}.`)
  }
  const found = config.contexts.get(name)
  if (found) return found
  const from = wanted === undefined ? 'current-context' : '--context'
  throw new KpngError(
    'invalid',
    `There is no context "${name}" (${from}) in the kubeconfig ${files}. Choose ${choices}.`,
  )
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
  const where = entry ? `cluster "${entry.name}" in ${entry.file}` : '--server'
  const fields = entry?.fields ?? {}
  const insecure = fields['insecure-skip-tls-verify'] ?? false
  const ca = entry && materialOf(entry, where, 'certificate-authority', fields)
  if (insecure && ca) {
    throw new KpngError(
      'invalid',
      `The ${where} sets both insecure-skip-tls-verify and certificate-authority. Remove the first (it is unsafe).`,
    )
  }
  const serverField = server === undefined ? `server of ${where}` : '--server'
  return {
    server: checkServer(server ?? fields.server ?? '', serverField),
    serverField,
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
  const clientCertificate = materialOf(entry, where, 'client-certificate', fields)
  const clientKey = materialOf(entry, where, 'client-key', fields)
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

type MaterialField = 'certificate-authority' | 'client-certificate' | 'client-key'
type MaterialFields = { readonly [name in MaterialField | `${MaterialField}-data`]?: string | null | undefined }

/** `x-data` (base64) wins over `x` (a path), as in client-go. */
function materialOf(
  entry: Entry<unknown>,
  where: string,
  name: MaterialField,
  fields: MaterialFields,
): Material | undefined {
  const data = fields[`${name}-data`]
  if (data) return { field: `${name}-data of ${where}`, pem: decodeBase64(data, `${name}-data of ${where}`) }
  const path = fields[name]
  return path ? { field: `${name} of ${where}`, file: pathFrom(entry.file, path) } : undefined
}

function decodeBase64(text: string, field: string): string {
  const compact = text.replace(/\s+/g, '')
  if (compact.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(compact)) {
    return Buffer.from(compact, 'base64').toString('utf8')
  }
  throw new KpngError(
    'invalid',
    `The ${field} is not base64. Encode the PEM file with "base64 -w0", or name it by its path.`,
  )
}
