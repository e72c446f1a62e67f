import { readFile } from 'node:fs/promises'
import { KpngError, messageOf } from '@kpng/api'
import { type ConfigWarning, configurationIn } from './document.js'
import { invalid } from './kinds.js'
import { isZero, pathFor, pathsOfOtherModes } from './sections.js'
import { everySetting, type SettingKey, type Settings } from './settings.js'
import { unimplementedFields } from './unimplemented.js'

interface FileConfig {
  /** What the file sets, without fields that have Go's zero value. */
  readonly settings: Partial<Settings>
  /** In the order of the file, each field once. */
  readonly warnings: readonly ConfigWarning[]
  /** The warnings that do not depend on the mode. */
  readonly unknown: readonly ConfigWarning[]
}

/**
 * Reads a KubeProxyConfiguration, YAML or JSON, as kube-proxy does: leniently in its fields, strictly in their values.
 * @param defaultMode whose sections count if the file names no mode
 */
export async function readConfigFile(path: string, defaultMode = ''): Promise<FileConfig> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `The configuration file ${path} cannot be read: ${messageOf(error)}. Check that it is a file that kpng may read.`,
      {
        cause: error,
      },
    )
  }
  try {
    return readConfig(text, defaultMode)
  } catch (error) {
    if (!(error instanceof KpngError)) throw error
    throw new KpngError(error.code, `In the configuration file ${path}: ${error.message}`, { cause: error })
  }
}

/** The same from the text of the file. */
export function readConfig(text: string, defaultMode = ''): FileConfig {
  const { configuration, warnings } = configurationIn(text)
  const fields = new Map<string, unknown>()
  const unknown: ConfigWarning[] = [...warnings]
  collect(configuration, '', fields, unknown)
  const mode = String(fields.get('mode') ?? '') || defaultMode
  const settings: { [key: string]: unknown } = {}
  for (const [key, { paths, kind }] of everySetting) {
    const path = pathFor(paths, mode, (candidate) => fields.get(candidate))
    const value = fields.get(path)
    if (value === null || value === undefined) continue
    const read = kind.fromFile(value, path)
    if (read !== undefined) settings[key] = read
  }
  return { settings: settings as Partial<Settings>, warnings: [...unknown, ...modeWarnings(mode, fields)], unknown }
}

const settingPaths = new Set(everySetting.flatMap(([, { paths }]) => paths))
const knownPaths = [...settingPaths, ...Object.keys(unimplementedFields)]
const isSection = (path: string) => knownPaths.some((known) => known.startsWith(`${path}.`))

/** Sorts the fields into those that kpng uses, those that it does not use, and those that do not exist. */
function collect(value: object, prefix: string, fields: Map<string, unknown>, warnings: ConfigWarning[]): void {
  for (const [name, inner] of Object.entries(value)) {
    const path = prefix === '' ? name : `${prefix}.${name}`
    if (path === 'apiVersion' || path === 'kind') continue
    const why = unimplementedFields[path]
    if (settingPaths.has(path)) fields.set(path, inner)
    else if (why !== undefined) {
      if (!isZero(inner)) warnings.push({ field: path, message: `${path} is set, and has no effect here: ${why}.` })
    } else if (!isSection(path)) {
      const message = `${path} is not a field of a KubeProxyConfiguration. Check its spelling and place; it is ignored.`
      warnings.push({ field: path, message })
    } else if (inner !== null) {
      if (typeof inner !== 'object' || Array.isArray(inner))
        throw invalid(path, inner, 'It has fields: write a section.')
      collect(inner, path, fields, warnings)
    }
  }
}

/** Warnings about the settings of a file that a backend does not use. */
export function unusedSettings(
  settings: Partial<Settings>,
  used: readonly SettingKey[],
  backend: string,
): ConfigWarning[] {
  return everySetting.flatMap(([key, { paths, kind }]) => {
    const value = settings[key]
    if (value === undefined || used.includes(key)) return []
    const [field] = paths
    const set = `${field} is set (${JSON.stringify(kind.toFile(value))})`
    return [{ field, message: `${set}, and has no effect here: the ${backend} mode does not use it.` }]
  })
}

/** Warnings about settings for other modes, and about differences from kube-proxy. */
function modeWarnings(mode: string, fields: ReadonlyMap<string, unknown>): ConfigWarning[] {
  const warnings: ConfigWarning[] = []
  const warn = (field: string, message: string) => warnings.push({ field, message })
  for (const field of everySetting.flatMap(([, { paths }]) => pathsOfOtherModes(paths, mode))) {
    const [section] = field.split('.')
    if (!isZero(fields.get(field)))
      warn(field, `${field} is set, and has no effect here: only the ${section} mode uses it.`)
  }
  for (const [field, value] of fields) {
    if (field.startsWith('winkernel.') && mode !== 'kernelspace' && !isZero(value))
      warn(field, `${field} is set, and has no effect here: only the kernelspace mode uses it.`)
  }
  if (mode !== '' && mode !== 'nftables') return warnings
  if (fields.get('iptables.localhostNodePorts') === true) {
    const message =
      'iptables.localhostNodePorts is true, and has no effect here: nftables serves no node ports on loopback.'
    warn('iptables.localhostNodePorts', message)
  }
  if (mode === '' && isZero(fields.get('nodePortAddresses'))) {
    warn(
      'nodePortAddresses',
      "nodePortAddresses is not set, nor is mode: kube-proxy would use iptables and serve node ports on every address, kpng uses nftables and the node's primary addresses. Set nodePortAddresses to [all] to have them everywhere.",
    )
  }
  return warnings
}
