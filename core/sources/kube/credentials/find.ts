import { access, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { KpngError, messageOf } from '@kpng/api'
import { anonymous, type ConnectionConfig } from './config.js'
import { resolveContext } from './context.js'
import { mergeKubeconfigs, parseKubeconfig, readIfThere } from './kubeconfig.js'
import { checkServer } from './server-url.js'

export interface FindOptions {
  /** `--kubeconfig`: this file and no other. */
  readonly kubeconfig?: string
  /** `--context`: instead of the kubeconfig's current-context. */
  readonly context?: string
  /** `--server`: instead of the cluster's server. */
  readonly server?: string
  /** Default: the process's environment. */
  readonly env?: NodeJS.ProcessEnv
  /** Where `.kube/config` is looked for. Default: the user's home. */
  readonly home?: string
  /** Where a pod finds its service account. */
  readonly serviceAccountFolder?: string
}

const defaultServiceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * The first of these that is there: `--kubeconfig`, `KUBECONFIG`, the pod's service account, `~/.kube/config`, `--server`
 * alone (without credentials, as behind `kubectl proxy`).
 */
export async function findConfig(options: FindOptions = {}): Promise<ConnectionConfig> {
  const env = options.env ?? process.env
  if (options.kubeconfig !== undefined) return fromFiles([options.kubeconfig], '--kubeconfig', options)
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '')
  if (listed.length > 0) return fromFiles(listed, 'KUBECONFIG', options)
  const folder = options.serviceAccountFolder ?? defaultServiceAccountFolder
  if (options.context === undefined && (await isInCluster(env, folder))) return inCluster(env, folder, options.server)
  const home = join(options.home ?? homedir(), '.kube', 'config')
  if ((await readIfThere(home)) !== undefined) return fromFiles([home], 'the default', options)
  if (options.server !== undefined && options.context === undefined) return serverAlone(options.server)
  throw new KpngError(
    'unavailable',
    `No Kubernetes API server is known: KUBECONFIG is not set, there is no ${home}, and this is not a pod with a service ` +
      `account (${folder}/token). Give --kubeconfig FILE.`,
  )
}

async function fromFiles(files: readonly string[], from: string, options: FindOptions): Promise<ConnectionConfig> {
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readIfThere(file) })))
  // As client-go: of several files some may be missing.
  const there = texts.flatMap(({ file, text }) => (text === undefined ? [] : [parseKubeconfig(file, text)]))
  if (there.length === 0) {
    throw new KpngError('unavailable', `The kubeconfig ${files.join(', ')} (${from}) does not exist. Check the path.`)
  }
  return resolveContext(mergeKubeconfigs(there), options)
}

async function isInCluster(env: NodeJS.ProcessEnv, folder: string): Promise<boolean> {
  if (!env.KUBERNETES_SERVICE_HOST || !env.KUBERNETES_SERVICE_PORT) return false
  return access(join(folder, 'token')).then(
    () => true,
    () => false,
  )
}

function inCluster(env: NodeJS.ProcessEnv, folder: string, server: string | undefined): ConnectionConfig {
  const host = env.KUBERNETES_SERVICE_HOST ?? ''
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT}`
  const serverField = server === undefined ? 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT' : '--server'
  return {
    described: "the pod's service account",
    cluster: {
      server: checkServer(server ?? url, serverField),
      serverField,
      tlsServerName: undefined,
      insecureSkipTlsVerify: false,
      certificateAuthority: { field: "ca.crt of the pod's service account", file: join(folder, 'ca.crt') },
      proxyUrl: undefined,
    },
    user: {
      ...anonymous,
      described: "the pod's service account",
      tokenFile: { field: "token of the pod's service account", file: join(folder, 'token') },
    },
  }
}

const serverAlone = (server: string): ConnectionConfig => ({
  described: '--server, without credentials',
  cluster: {
    server: checkServer(server, '--server'),
    serverField: '--server',
    tlsServerName: undefined,
    insecureSkipTlsVerify: false,
    certificateAuthority: undefined,
    proxyUrl: undefined,
  },
  user: anonymous,
})

/** The namespace this pod runs in, or undefined outside a cluster. */
export async function podNamespace(folder = defaultServiceAccountFolder): Promise<string | undefined> {
  try {
    return (await readFile(join(folder, 'namespace'), 'utf8')).trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new KpngError('unavailable', `Cannot read ${join(folder, 'namespace')}: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}
