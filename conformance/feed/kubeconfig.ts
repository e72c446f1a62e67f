import { readFile, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { CORE_SCHEMA, dump, load } from 'js-yaml'
import { ConformanceError, messageOf } from '../error.js'

/** Where the API server of a kubeconfig is. */
export interface ApiServer {
  readonly host: string
  readonly port: number
}

interface Named<Name extends string> {
  readonly name: string
  readonly entry: Record<string, unknown>
  readonly kind: Name
}

export interface KubeconfigCopy {
  readonly server: ApiServer
  /** An address that the copy asks the API server at; undefined: it names a host, and was pointed at the loopback. */
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
  const cluster = find(config, 'cluster', String(context.entry.cluster ?? ''), path)
  const users = (config.users as { user?: Record<string, unknown> }[] | undefined) ?? []
  for (const entry of [cluster.entry, ...users.map(({ user }) => user ?? {})])
    makeAbsolute(entry, dirname(resolve(path)))
  const url = serverUrl(cluster, path)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const isAddress = /^[\d.]+$/.test(host) || host.includes(':')
  const address = isAddress ? host : '127.0.0.1'
  if (!isAddress && host !== 'localhost') {
    if (url.protocol === 'https:') cluster.entry['tls-server-name'] ??= host
    cluster.entry.server = `${url.protocol}//127.0.0.1:${port}${url.pathname}`
  }
  const copy = join(folder, 'kubeconfig')
  await writeFile(copy, dump(config), { mode: 0o600 })
  return { server: { host, port }, address, path: copy }
}

async function read(path: string): Promise<Record<string, unknown>> {
  try {
    return load(await readFile(path, 'utf8'), { schema: CORE_SCHEMA }) as Record<string, unknown>
  } catch (error) {
    throw new ConformanceError('usage', `The kubeconfig ${path} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

function find<Name extends string>(
  config: Record<string, unknown>,
  kind: Name,
  name: string,
  path: string,
): Named<Name> {
  const list = config[`${kind}s`] as ({ name: string } & Record<string, unknown>)[] | undefined
  const entry = list?.find((one) => one.name === name)?.[kind] as Record<string, unknown> | undefined
  if (!entry)
    throw new ConformanceError('usage', `The kubeconfig ${path} has no ${kind} "${name}". Set its current-context.`)
  return { name, entry, kind }
}

function serverUrl({ name, entry }: Named<'cluster'>, path: string): URL {
  try {
    return new URL(String(entry.server))
  } catch {
    throw new ConformanceError('usage', `The cluster "${name}" of ${path} has no usable server URL: ${entry.server}.`)
  }
}

function makeAbsolute(entry: Record<string, unknown>, folder: string): void {
  for (const field of fileFields) {
    const value = entry[field]
    if (typeof value === 'string' && value !== '' && !isAbsolute(value)) entry[field] = join(folder, value)
  }
}
