import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { hostPort, KpngError } from '@kpng/api'
import { anonymous, type ConnectionConfig, clusterAt, givenServer } from './config.js'
import { resolveContext } from './context.js'
import { mergeKubeconfigs, parseKubeconfig, readIfThere } from './kubeconfig.js'

export interface LoadingOptions {
  /** This kubeconfig file and no other. */
  readonly kubeconfig?: string
  /** Instead of the kubeconfig's current-context. */
  readonly context?: string
  /** The URL of the API server, instead of the cluster's server. */
  readonly server?: string
  /** Default: the environment of the process. */
  readonly env?: NodeJS.ProcessEnv
  /** The folder that holds `.kube/config`. Default: the user's home. */
  readonly home?: string
  /** The folder that holds a pod's service account. */
  readonly serviceAccountFolder?: string
}

/**
 * Finds the API server and the credentials. The first of these that exists decides: the given kubeconfig, `KUBECONFIG`, the pod's
 * service account, `~/.kube/config`, the given server alone (without credentials, as behind `kubectl proxy`).
 */
export async function loadConfig(options: LoadingOptions = {}): Promise<ConnectionConfig> {
  const env = options.env ?? process.env
  if (options.kubeconfig !== undefined) return fromFiles([options.kubeconfig], options)
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '')
  if (listed.length > 0) return fromFiles(listed, options, ' in KUBECONFIG')
  const folder = options.serviceAccountFolder ?? '/var/run/secrets/kubernetes.io/serviceaccount'
  if (options.context === undefined && (await isInCluster(env, folder))) return inCluster(env, folder, options.server)
  const home = join(options.home ?? homedir(), '.kube', 'config')
  if ((await readIfThere(home)) !== undefined) return fromFiles([home], options)
  if (options.server !== undefined && options.context === undefined) {
    const described = 'the given server, without credentials'
    return { described, cluster: clusterAt(options.server, givenServer), user: anonymous }
  }
  throw new KpngError(
    'unavailable',
    `No Kubernetes API server is known: KUBECONFIG is not set, ${home} does not exist, and this is not a pod with a service ` +
      `account (${folder}/token). Give a kubeconfig file.`,
  )
}

async function fromFiles(files: readonly string[], options: LoadingOptions, from = ''): Promise<ConnectionConfig> {
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readIfThere(file) })))
  // As in client-go, some of several files may be missing.
  const found = texts.flatMap(({ file, text }) => (text === undefined ? [] : [parseKubeconfig(file, text)]))
  if (found.length === 0) {
    throw new KpngError('unavailable', `The kubeconfig ${files.join(', ')}${from} does not exist. Check the path.`)
  }
  return resolveContext(mergeKubeconfigs(found), options)
}

async function isInCluster(env: NodeJS.ProcessEnv, folder: string): Promise<boolean> {
  if (!env.KUBERNETES_SERVICE_HOST || !env.KUBERNETES_SERVICE_PORT) return false
  return access(join(folder, 'token')).then(
    () => true,
    () => false,
  )
}

function inCluster(env: NodeJS.ProcessEnv, folder: string, server: string | undefined): ConnectionConfig {
  const url = `https://${hostPort(env.KUBERNETES_SERVICE_HOST ?? '', Number(env.KUBERNETES_SERVICE_PORT))}`
  const serverField =
    server === undefined ? 'address in KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT' : givenServer
  const described = "the pod's service account"
  return {
    described,
    cluster: {
      ...clusterAt(server ?? url, serverField),
      certificateAuthority: { field: `ca.crt of ${described}`, file: join(folder, 'ca.crt') },
    },
    user: {
      ...anonymous,
      described,
      tokenFile: { field: `token of ${described}`, file: join(folder, 'token') },
    },
  }
}
