import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { KpngError, messageOf } from '@kpng/api'
import * as v from 'valibot'
import { readDocuments } from '../../yaml.js'

// Reads kubeconfig files and checks their shape. `context.ts` decides what the entries mean.

const text = v.nullish(v.string())
const texts = v.nullish(v.array(v.string()))
const flag = v.nullish(v.boolean())

const clusterSchema = v.looseObject({
  server: text,
  'tls-server-name': text,
  'insecure-skip-tls-verify': flag,
  'certificate-authority': text,
  'certificate-authority-data': text,
  'proxy-url': text,
  extensions: v.nullish(v.array(v.looseObject({ name: v.string(), extension: v.unknown() }))),
})

const execSchema = v.looseObject({
  apiVersion: text,
  command: text,
  args: texts,
  env: v.nullish(v.array(v.looseObject({ name: v.string(), value: text }))),
  installHint: text,
  provideClusterInfo: flag,
  interactiveMode: text,
})

const userSchema = v.looseObject({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  'as-uid': text,
  'as-groups': texts,
  exec: v.nullish(execSchema),
  'auth-provider': v.optional(v.unknown()),
})

const contextSchema = v.looseObject({ cluster: text, user: text, namespace: text })

const fileSchema = v.looseObject({
  kind: text,
  'current-context': text,
  clusters: v.nullish(v.array(v.looseObject({ name: v.string(), cluster: v.nullish(clusterSchema) }))),
  users: v.nullish(v.array(v.looseObject({ name: v.string(), user: v.nullish(userSchema) }))),
  contexts: v.nullish(v.array(v.looseObject({ name: v.string(), context: v.nullish(contextSchema) }))),
})

export type ClusterFields = v.InferOutput<typeof clusterSchema>
export type UserFields = v.InferOutput<typeof userSchema>
export type ExecFields = v.InferOutput<typeof execSchema>
export type ContextFields = v.InferOutput<typeof contextSchema>

/** An entry and its file: relative paths in it start at the folder of that file. */
export interface Entry<T> {
  readonly name: string
  readonly file: string
  readonly fields: T
}

export interface Kubeconfig {
  readonly files: readonly string[]
  readonly currentContext: string | undefined
  readonly clusters: ReadonlyMap<string, Entry<ClusterFields>>
  readonly users: ReadonlyMap<string, Entry<UserFields>>
  readonly contexts: ReadonlyMap<string, Entry<ContextFields>>
}

/** A path in a kubeconfig file, made absolute. */
export const pathFrom = (file: string, path: string): string => (isAbsolute(path) ? path : resolve(dirname(file), path))

/** The text of a kubeconfig file, or undefined if there is no such file. */
export async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new KpngError(
      'unavailable',
      `Cannot read the kubeconfig file ${file}: ${messageOf(error)}. Check its owner and its mode.`,
      { cause: error },
    )
  }
}

export function parseKubeconfig(file: string, source: string): Kubeconfig {
  const content = parseYaml(file, source) ?? {}
  const parsed = v.safeParse(fileSchema, Array.isArray(content) ? 'a list' : content)
  if (!parsed.success) throw shapeError(file, parsed.issues[0])
  const { kind, clusters, users, contexts, 'current-context': currentContext } = parsed.output
  if (kind && kind !== 'Config') {
    throw new KpngError('invalid', `The file ${file} is a ${kind}, not a kubeconfig (kind: Config). Give another file.`)
  }
  return {
    files: [file],
    currentContext: currentContext || undefined,
    clusters: firstByName((clusters ?? []).map(({ name, cluster }) => ({ name, file, fields: cluster ?? {} }))),
    users: firstByName((users ?? []).map(({ name, user }) => ({ name, file, fields: user ?? {} }))),
    contexts: firstByName((contexts ?? []).map(({ name, context }) => ({ name, file, fields: context ?? {} }))),
  }
}

/** As client-go merges the files of KUBECONFIG: the first file that has an entry, or a current context, decides. */
export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  return {
    files: configs.flatMap((config) => config.files),
    currentContext: configs.find((config) => config.currentContext)?.currentContext,
    clusters: firstByName(configs.flatMap((config) => [...config.clusters.values()])),
    users: firstByName(configs.flatMap((config) => [...config.users.values()])),
    contexts: firstByName(configs.flatMap((config) => [...config.contexts.values()])),
  }
}

function firstByName<T>(entries: readonly Entry<T>[]): Map<string, Entry<T>> {
  const map = new Map<string, Entry<T>>()
  for (const entry of entries) if (!map.has(entry.name)) map.set(entry.name, entry)
  return map
}

function parseYaml(file: string, source: string): unknown {
  let documents: unknown[]
  try {
    documents = readDocuments(file, source)
  } catch (error) {
    // Without what the parser quotes, and without the cause: the file holds secrets.
    const what = messageOf(error).replace(/:? ?["'`!][\s\S]*$|\.$/, '')
    throw new KpngError('invalid', `The kubeconfig file ${file} is not valid YAML: ${what}. Correct it.`)
  }
  if (documents.length <= 1) return documents[0]
  throw new KpngError('invalid', `The kubeconfig file ${file} has several YAML documents. Keep one of them.`)
}

/** Names the field and what it must be, and never its value: that may be a secret. */
function shapeError(file: string, issue: v.BaseIssue<unknown>): KpngError {
  const path = (issue.path ?? [])
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')
  const expected = issue.expected?.replace(/[()]/g, '').replace(/ \| (undefined|null)/g, '')
  const what = { string: 'text; put it in quotes', boolean: 'true or false', Array: 'a list', Object: 'a mapping' }
  const wanted = what[(expected ?? '') as keyof typeof what] ?? expected ?? 'something else'
  return new KpngError('invalid', `In the kubeconfig file ${file}, ${path || 'the whole file'} must be ${wanted}.`)
}
