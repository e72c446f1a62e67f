import { type Flags, given, textFlag } from '../context.js'
import type { SourceCommand } from './source.js'

export const kubeSource: SourceCommand = {
  name: 'kube',
  summary: 'watch the Kubernetes API',
  example: 'kpng kube --kubeconfig ~/.kube/config to-api',
  addFlags: (command) =>
    command
      .option(
        '--kubeconfig <path>',
        'a kubeconfig; default: KUBECONFIG of the environment, in a pod its service account, ~/.kube/config',
      )
      .option('--context <name>', "the kubeconfig's context; default: its current one")
      .option('--server <url>', "the API server, instead of the kubeconfig's")
      .option(
        '--service-proxy-name <name>',
        'take only Services with this service-proxy-name label; default: those without one',
      )
      .option('--with-service-labels <globs>', 'labels of Services to pass on, by key; default: none')
      .option('--with-service-annotations <globs>', 'annotations of Services to pass on')
      .option('--with-node-labels <globs>', 'labels of Nodes to pass on')
      .option('--with-node-annotations <globs>', 'annotations of Nodes to pass on'),
  run: async (flags, store, { log, signal, events }) => {
    const { loadConnection, watchKube } = await import('@kpng/core/sources/kube')
    const connection = await loadConnection({
      ...given('kubeconfig', textFlag(flags, 'kubeconfig')),
      ...given('context', textFlag(flags, 'context')),
      ...given('server', textFlag(flags, 'server')),
    })
    try {
      await watchKube({
        store,
        log,
        signal,
        connection,
        ...given('serviceProxyName', textFlag(flags, 'serviceProxyName')),
        serviceLabels: globs(flags, 'withServiceLabels'),
        serviceAnnotations: globs(flags, 'withServiceAnnotations'),
        nodeLabels: globs(flags, 'withNodeLabels'),
        nodeAnnotations: globs(flags, 'withNodeAnnotations'),
        onEvent: () => events.countApiEvents(1),
      })
    } finally {
      await connection.close()
    }
  },
}

/** A list with commas; those inside braces belong to a glob. */
function globs(flags: Flags, name: string): string[] {
  const parts = (textFlag(flags, name) ?? '').match(/(?:\{[^}]*\}|[^,{])+/g) ?? []
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}
