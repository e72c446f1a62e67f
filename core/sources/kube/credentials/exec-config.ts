import { KpngError } from '@kpng/api'
import type { ExecConfig } from './config.js'
import { type ClusterFields, type ExecFields, pathFrom } from './kubeconfig.js'

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const modes = ['Never', 'IfAvailable', 'Always'] as const

/** Checks an `exec` entry, by client-go's rules. */
export function execConfigOf(
  fields: ExecFields,
  where: string,
  file: string,
  cluster: ClusterFields | undefined,
): ExecConfig {
  const apiVersion = fields.apiVersion ?? ''
  if (!versions.includes(apiVersion)) {
    throw new KpngError(
      'invalid',
      `The exec.apiVersion of ${where} is "${apiVersion}". It must be ${versions.join(' or ')}; update the plugin if it is older.`,
    )
  }
  if (!fields.command) {
    throw new KpngError('invalid', `The exec.command of ${where} is empty. Set it to the plugin's program.`)
  }
  // v1beta1 had no such field at first, and then meant IfAvailable; v1 demands it.
  const given = fields.interactiveMode ?? (apiVersion.endsWith('v1beta1') ? 'IfAvailable' : '')
  const interactiveMode = modes.find((mode) => mode === given)
  if (!interactiveMode) {
    throw new KpngError('invalid', `The exec.interactiveMode of ${where} must be one of: ${modes.join(', ')}.`)
  }
  const extension = cluster?.extensions?.find(({ name }) => name === 'client.authentication.k8s.io/exec')
  return {
    field: `exec of ${where}`,
    apiVersion,
    // A bare name is looked up in PATH, anything with a slash in it is a path.
    command: /[/\\]/.test(fields.command) ? pathFrom(file, fields.command) : fields.command,
    args: fields.args ?? [],
    env: Object.fromEntries((fields.env ?? []).map(({ name, value }) => [name, value ?? ''])),
    installHint: fields.installHint?.trim() || undefined,
    provideClusterInfo: fields.provideClusterInfo ?? false,
    interactiveMode,
    clusterExtension: extension?.extension ?? null,
  }
}
