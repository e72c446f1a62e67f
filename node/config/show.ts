import { flagText } from './kinds.js'
import type { ResolvedSettings } from './resolve.js'
import { pathFor } from './sections.js'
import { everySetting } from './settings.js'

/** The settings as kube-proxy's /configz shows them: a KubeProxyConfiguration, all fields filled; and where each came from. */
export function configz({ settings, origins }: ResolvedSettings): object {
  const configuration: { [name: string]: unknown } = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
  }
  const originOf: { [path: string]: string } = {}
  for (const [key, { paths, kind }] of everySetting) {
    const path = pathFor(paths, settings.mode, () => undefined)
    put(configuration, path.split('.'), kind.toFile(settings[key]))
    originOf[path] = origins[key]
  }
  return { 'kubeproxy.config.k8s.io': configuration, 'kpng.origins': originOf }
}

function put(object: { [name: string]: unknown }, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  if (rest.length === 0) {
    object[name] = value
    return
  }
  object[name] ??= {}
  put(object[name] as { [name: string]: unknown }, rest, value)
}

/** The settings as kube-proxy's /flagz shows them, by flag; what did not come from a flag says so. */
export function flagz({ settings, origins }: ResolvedSettings): { readonly [flag: string]: string } {
  return Object.fromEntries(
    everySetting.map(([key, { flag, kind }]) => {
      const value = kind.toFile(settings[key])
      const text = flagText(value)
      return [flag, origins[key] === 'flag' ? text : `${text} (${origins[key]})`]
    }),
  )
}
