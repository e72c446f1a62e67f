import { KpngError } from '@kpng/api'
import { CORE_SCHEMA, loadAll, YAMLException } from 'js-yaml'

const apiGroup = 'kubeproxy.config.k8s.io'
const apiVersion = `${apiGroup}/v1alpha1`
const kind = 'KubeProxyConfiguration'
/** The key under which kubeadm keeps the file in its ConfigMap. */
const configMapKey = 'config.conf'

/** Something in the file that has no effect. */
export interface ConfigWarning {
  /** The path of the field, as `ipvs.scheduler`; empty if it is about the file as a whole. */
  readonly field: string
  /** A sentence that names the field. */
  readonly message: string
}

interface ConfigurationDocument {
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
  const kinds = objects.map((object) => String(object.kind ?? 'an object without a kind')).join(', ') || 'nothing'
  throw new KpngError(
    'invalid',
    `There is no ${kind} in it (found: ${kinds}). Write kind: ${kind} and apiVersion: ${apiVersion} at its top.`,
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function objectsIn(text: string, warnings: ConfigWarning[]): Record<string, unknown>[] {
  const documents = documentsIn(text, warnings)
  if (hasTooManyValues(documents)) {
    throw new KpngError('invalid', 'Its YAML aliases stand for too many values, or for themselves. Write the values.')
  }
  return documents.filter(isObject)
}

/** @param lenient of several values for one key, use the last */
function documentsIn(text: string, warnings: ConfigWarning[], lenient = false): unknown[] {
  try {
    return loadAll(text, null, { schema: CORE_SCHEMA, json: lenient })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { reason, mark } = error
    const where = `line ${mark.line + 1}, column ${mark.column + 1}`
    if (reason !== 'duplicated mapping key') {
      throw new KpngError('invalid', `It is not valid YAML: ${reason} (${where}).`)
    }
    // kube-proxy also warns and uses the last value.
    warnings.push({ field: '', message: `A field is given twice (${where}). The last value is used.` })
    return documentsIn(text, warnings, true)
  }
}

/** A few lines of aliases can stand for billions of values, or for a value that contains itself. */
function hasTooManyValues(value: unknown): boolean {
  let left = 100_000
  const isTooMuch = (inner: unknown, depth: number): boolean =>
    --left < 0 ||
    depth > 100 ||
    (typeof inner === 'object' && inner !== null && Object.values(inner).some((item) => isTooMuch(item, depth + 1)))
  return isTooMuch(value, 0)
}
