import { once } from 'node:events'
import { KpngError } from '@kpng/api'
import { parseAddress } from '@kpng/client/address'
import { booleanFlag, checked, type Flags, given, textFlag } from '../context.js'
import { serviceAnswer } from '../explain.js'
import { booleanOption, groups } from '../help.js'
import { addCoreAgentFlags, coreAgentFrom, openCoreApi } from './core-agent.js'
import type { SinkCommand } from './sink.js'

/** How long clients may take to leave when kpng stops. */
const graceMs = 1000

export const apiSink: SinkCommand = {
  name: 'to-api',
  summary: 'serve the state over gRPC: each node gets its own view, relays get everything',
  examples: ['--listen :12090', '--listen unix:///run/kpng/kpng.sock'],
  addFlags: (command) =>
    addCoreAgentFlags(
      command
        .option('--listen <address>', 'host:port, :port (every address) or unix:///path', '127.0.0.1:12090')
        .addOption(booleanOption('--local-api', "serve each node's view (localv1)", true))
        .addOption(booleanOption('--globalv1-api', 'serve the whole state (globalv1), for relays', true))
        .option(
          '--max-connections-per-client <count>',
          'connections of one address (default: 2000, and at most a quarter of all)',
        )
        .optionsGroup(groups.tls)
        .option('--listen-tls-key <file>', 'key of the server, PEM')
        .option('--listen-tls-crt <file>', 'certificate of the server, PEM')
        .option(
          '--listen-tls-ca <file>',
          'CA that must have signed the certificates of clients, PEM (default: no TLS)',
        ),
    ),
  run: async (flags, store, context) => {
    const { log, signal, events, source, kube } = context
    const { loadTls, noApiCounts, serveApi, tlsFilesOf } = await import('@kpng/core/sinks/api')
    const tls = {
      ...given('keyFile', textFlag(flags, 'listenTlsKey')),
      ...given('certFile', textFlag(flags, 'listenTlsCrt')),
      ...given('caFile', textFlag(flags, 'listenTlsCa')),
    }
    const counters = noApiCounts()
    const startAgent = await coreAgentFrom(flags)
    const listen = textFlag(flags, 'listen')
    const perClient = await maxConnectionsPerClient(flags)
    // Checked before the first port is opened.
    if (listen !== undefined) await checked('--listen', () => parseAddress(listen))
    const tlsFiles = tlsFilesOf(tls)
    if (tlsFiles) await loadTls(tlsFiles)
    const { watchOpenFiles } = await import('@kpng/linux')
    watchOpenFiles({ log, signal })
    const agent = await startAgent?.(store, counters, context)
    const { View } = await import('@kpng/core/view')
    const view = new View(store)
    const api = await openCoreApi(flags, store, view, counters, context)
    try {
      const server = await serveApi({
        store,
        log,
        ...given('listen', listen),
        ...given('tls', tlsFiles),
        limits: given('maxConnectionsPerPeer', perClient),
        localApi: booleanFlag(flags, 'localApi', true),
        globalApi: booleanFlag(flags, 'globalv1Api', true),
        counters,
        view,
        source,
        answerService: (service, nodeName) => serviceAnswer(service, store, flags, { kube, nodeName }),
        onSent: (items) => events.countNodeLocalEvents(items),
      })
      if (!signal.aborted) await once(signal, 'abort')
      await server.close(graceMs)
    } finally {
      await Promise.all([agent?.close(), api?.close()])
    }
  },
}

async function maxConnectionsPerClient(flags: Flags): Promise<number | undefined> {
  const name = '--max-connections-per-client'
  const text = textFlag(flags, 'maxConnectionsPerClient')
  if (text === undefined) return undefined
  const { wholeNumber } = await import('@kpng/client')
  const count = wholeNumber(name, text)
  if (count > 0) return count
  throw new KpngError('usage', `${name} is 0: no client could connect. Give 1 or more.`)
}
