import { KpngError } from '@kpng/api'
import { parseAllDocuments } from 'yaml'
import type { ConfigWarning } from './read-config.js'

const apiGroup = 'kubeproxy.config.k8s.io'
const apiVersion = `${apiGroup}/v1alpha1`
const kind = 'KubeProxyConfiguration'
/** The key under which kubeadm keeps the file in its ConfigMap. */
const configMapKey = 'config.conf'

export interface ConfigurationDocument {
  readonly configuration: object
  readonly warnings: readonly ConfigWarning[]
}

/**
 * The KubeProxyConfiguration in a text: the only document of it, one of several (as in a file for kubeadm), or what kubeadm's ConfigMap
 * holds, for people who saved that with kubectl.
 */
export function configurationIn(text: string): ConfigurationDocument {
  const warnings: ConfigWarning[] = []
  const objects = objectsIn(text, warnings)
  const found = objects.find((object) => object.kind === kind)
  if (found) {
    if (found.apiVersion === apiVersion) return { configuration: found, warnings }
    throw new KpngError('invalid', `apiVersion is ${JSON.stringify(found.apiVersion)}. Only ${apiVersion} can be read.`)
  }
  for (const object of objects) {
    const inner = object.kind === 'ConfigMap' && (object.data as Record<string, unknown> | undefined)?.[configMapKey]
    if (typeof inner === 'string') return configurationIn(inner)
  }
  const kinds = objects.map((object) => String(object.kind ?? 'nothing with a kind')).join(', ') || 'nothing'
  throw new KpngError(
    'invalid',
    `There is no ${kind} (${apiVersion}) in it, but ${kinds}. Write its kind and apiVersion.`,
  )
}

function objectsIn(text: string, warnings: ConfigWarning[]): Record<string, unknown>[] {
  return [...parseAllDocuments(text)].flatMap((document) => {
    for (const error of document.errors) {
      const [line] = error.message.split('\n')
      if (error.code !== 'DUPLICATE_KEY') throw new KpngError('invalid', `It is not YAML: ${line}`, { cause: error })
      // kube-proxy goes on with the last one, and says so.
      warnings.push({ field: '', message: `A field is there twice, and the last one counts: ${line}` })
    }
    const value: unknown = document.toJS()
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? [value as Record<string, unknown>]
      : []
  })
}
