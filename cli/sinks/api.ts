import { once } from 'node:events'
import { booleanFlag, given, textFlag } from '../context.js'
import { addCoreAgentFlags, startCoreAgentFrom } from './core-agent.js'
import type { SinkCommand } from './sink.js'

/** How long clients may take to leave when kpng stops. */
const graceMs = 1000

export const apiSink: SinkCommand = {
  name: 'to-api',
  summary: 'serve it over gRPC: to every node its own view, to relays the whole state',
  example: 'kpng file -i examples/state.yaml to-api --listen tcp://127.0.0.1:12090',
  addFlags: (command) =>
    addCoreAgentFlags(
      command
        .option('--listen <address>', 'tcp://host:port, tcp://:port or unix:///path', 'tcp://127.0.0.1:12090')
        .option('--local-api [bool]', "serve each node's view (localv1)", 'true')
        .option('--globalv1-api [bool]', 'serve the whole state (globalv1), for relays', 'true')
        .option('--listen-tls-key <file>', 'TLS key; with TLS, clients must show a certificate of the CA')
        .option('--listen-tls-crt <file>', 'TLS certificate')
        .option('--listen-tls-ca <file>', 'TLS CA certificate'),
    ),
  run: async (flags, store, context, ready) => {
    const { log, signal, events, source } = context
    const { noApiCounts, serveApi } = await import('@kpng/core/sinks/api')
    const tls = {
      ...given('keyFile', textFlag(flags, 'listenTlsKey')),
      ...given('certFile', textFlag(flags, 'listenTlsCrt')),
      ...given('caFile', textFlag(flags, 'listenTlsCa')),
    }
    const counters = noApiCounts()
    const agent = await startCoreAgentFrom(flags, store, counters, context)
    const server = await serveApi({
      store,
      log,
      ...given('listen', textFlag(flags, 'listen')),
      ...(Object.keys(tls).length > 0 ? { tls } : {}),
      localApi: booleanFlag(flags, 'localApi', true),
      globalApi: booleanFlag(flags, 'globalv1Api', true),
      counters,
      source,
      onSent: (items) => events.countNodeLocalEvents(items),
    })
    ready()
    if (!signal.aborted) await once(signal, 'abort')
    await Promise.all([server.close(graceMs), agent?.close()])
  },
}
