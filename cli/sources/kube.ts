import { given, textFlag } from '../context.js'
import { addLabelFlags, labelOptions } from '../label-flags.js'
import type { SourceCommand } from './source.js'

export const kubeSource: SourceCommand = {
  name: 'kube',
  summary: 'watch the Kubernetes API',
  example: 'kpng kube',
  addFlags: (command) =>
    addLabelFlags(
      command
        .option(
          '--kubeconfig <path>',
          'a kubeconfig (default: KUBECONFIG, else the service account of the pod, else ~/.kube/config)',
        )
        .option('--context <name>', 'context of the kubeconfig (default: its current one)')
        .option('--server <url>', 'URL of the API server (default: that of the kubeconfig)')
        .option(
          '--service-proxy-name <name>',
          'take only Services with this service-proxy-name label (default: those without one)',
        ),
    ),
  start: async (flags, state, { log, signal, events, kube, source, resolved, nodeName, onlyThisNode }) => {
    const { loadConnection, watchKube } = await import('@kpng/core/sources/kube')
    const connection = await loadConnection({
      ...given('kubeconfig', textFlag(flags, 'kubeconfig') ?? (resolved?.settings.kubeconfig || undefined)),
      ...given('context', textFlag(flags, 'context')),
      ...given('server', textFlag(flags, 'server')),
      ...given('onRequest', kube?.sent.report),
    })
    kube?.connected(connection)
    const watching = watchKube({
      ...state,
      log,
      signal,
      connection,
      ...given('nodeName', onlyThisNode ? nodeName : undefined),
      ...given('serviceProxyName', textFlag(flags, 'serviceProxyName')),
      ...labelOptions(flags),
      onEvent: () => events.countApiEvents(1),
      status: source,
    })
    return { ended: watching.finally(() => connection.close()) }
  },
}
