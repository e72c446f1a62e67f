import { readFile, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { KpngError, messageOf } from '@kpng/api'
import { CORE_SCHEMA, dump, load } from 'js-yaml'

export interface KubeconfigCopy {
  /** Where the API server is. */
  readonly server: { readonly host: string; readonly port: number }
  /** The address at which the copy asks the API server: the loopback if the kubeconfig names a host. */
  readonly address: string
  readonly path: string
}

const fileFields = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']

/**
 * Writes a copy of a kubeconfig that works from inside a namespace where only `address` leads to the API server: paths are
 * absolute, and a server by name is replaced by the loopback with the name kept for its certificate.
 */
export async function copyKubeconfig(path: string, folder: string): Promise<KubeconfigCopy> {
  const config = await read(path)
  const context = find(config, 'context', String(config['current-context'] ?? ''), path)
  const clusterName = String(context.cluster ?? '')
  const cluster = find(config, 'cluster', clusterName, path)
  const users = (config.users as { user?: Record<string, unknown> }[] | undefined) ?? []
  for (const entry of [cluster, ...users.map(({ user }) => user ?? {})]) makeAbsolute(entry, dirname(resolve(path)))
  const url = serverUrl(cluster.server, clusterName, path)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const isAddress = /^[\d.]+$/.test(host) || host.includes(':')
  const address = isAddress ? host : '127.0.0.1'
  if (!isAddress && host !== 'localhost') {
    if (url.protocol === 'https:') cluster['tls-server-name'] ??= host
    cluster.server = `${url.protocol}//127.0.0.1:${port}${url.pathname}`
  }
  const copy = join(folder, 'kubeconfig')
  await writeFile(copy, dump(config), { mode: 0o600 })
  return { server: { host, port }, address, path: copy }
}

async function read(path: string): Promise<Record<string, unknown>> {
  try {
    return load(await readFile(path, 'utf8'), { schema: CORE_SCHEMA }) as Record<string, unknown>
  } catch (error) {
    throw new KpngError('usage', `The kubeconfig ${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

type Entry = Record<string, unknown>

function find(config: Entry, kind: 'context' | 'cluster', name: string, path: string): Entry {
  const list = config[`${kind}s`] as ({ name: string } & Record<string, unknown>)[] | undefined
  const entry = list?.find((one) => one.name === name)?.[kind] as Entry | undefined
  if (!entry) throw new KpngError('usage', `The kubeconfig ${path} has no ${kind} "${name}". Set its current-context.`)
  return entry
}

function serverUrl(server: unknown, clusterName: string, path: string): URL {
  try {
    return new URL(String(server))
  } catch {
    throw new KpngError('usage', `The cluster "${clusterName}" of ${path} has no usable server URL: ${server}.`)
  }
}

function makeAbsolute(entry: Record<string, unknown>, folder: string): void {
  for (const field of fileFields) {
    const value = entry[field]
    if (typeof value === 'string' && value !== '' && !isAbsolute(value)) entry[field] = join(folder, value)
  }
}
