import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError, messageOf } from '@kpng/api'
import { credentialsFor } from './credentials.js'
import { Faults } from './faults.js'
import { Kinds } from './kinds/index.js'
import { writeKubeconfig } from './kubeconfig.js'
import { type PlaygroundOptions, type Settings, settingsOf } from './options.js'
import { Objects } from './registry/objects.js'
import { Registry } from './registry/registry.js'
import { seed } from './seed.js'
import { ApiServer } from './server/api-server.js'
import { Handler } from './server/handler.js'
import type { WatchSettings } from './server/open-watch.js'
import { ServiceNetwork } from './services/network.js'
import { startControllers } from './start-controllers.js'
import { DataFile } from './storage/data-file.js'
import { Store } from './storage/store.js'

export interface Playground {
  /** `https://127.0.0.1:<port>` */
  readonly url: string
  /** A file only its owner can read; gone after `close()` unless it was asked for by `kubeconfigPath` or `dataDir`. */
  readonly kubeconfigPath: string
  /** The certificate of the authority that signed the server's. */
  readonly caPem: string
  /** The bearer token. */
  readonly token: string
  /** The first sample node, for `--node-name`. */
  readonly nodeName: string
  /** The objects, without HTTP. */
  readonly objects: Objects
  /** Switches for things that go wrong. */
  readonly faults: Faults
  /** The resourceVersion of the latest change. */
  readonly revision: number
  /** Ends everything: connections, pods, timers; writes what is to be kept. */
  close(): Promise<void>
}

/** Pieces that hold no connection yet. */
function prepare(settings: Settings) {
  const store = new Store({ logSize: settings.changeLogSize })
  const dataFile = settings.dataDir === undefined ? undefined : new DataFile(settings.dataDir, store)
  const network = new ServiceNetwork(store, settings.nodePorts)
  return { store, dataFile, network, registry: new Registry(store, new Kinds(network)) }
}

function watchSettingsOf({ streamingLists, bookmarks, bookmarkIntervalMs }: Settings): WatchSettings {
  return { streamingLists, bookmarks, bookmarkIntervalMs, expiredWatch: 'event', hang: false }
}

/** Writes something, or fails with a sentence: the disk may be read-only. */
function writing<T>(what: string, write: () => T): T {
  try {
    return write()
  } catch (cause) {
    if (cause instanceof KpngError) throw cause
    throw new KpngError(
      'unavailable',
      `The playground cannot write its ${what}: ${messageOf(cause)}. Choose a place that can be written: TMPDIR, or --kubeconfig and --data-dir.`,
      { cause },
    )
  }
}

/** Starts an API server with its controllers and sample nodes on loopback, and writes a kubeconfig for it. */
export async function startPlayground(options: PlaygroundOptions = {}): Promise<Playground> {
  const settings = settingsOf(options)
  const { log, address, maxGracePeriodSeconds, dataDir } = settings
  const { store, dataFile, network, registry } = writing('data', () => prepare(settings))
  const {
    caPem,
    server: certificate,
    token,
  } = writing('credentials', () =>
    credentialsFor(address, settings.token, dataDir && join(dataDir, 'credentials.json')),
  )
  const watchSettings = watchSettingsOf(settings)
  const faults = new Faults(store, watchSettings, (downMs) => server.restart(downMs))
  const handler = new Handler({ registry, faults, watchSettings, token, maxGracePeriodSeconds, log })
  const server = new ApiServer(address, settings.port, certificate, handler.handle)
  await server.listen().catch((error: unknown) => {
    dataFile?.close()
    throw error
  })
  seed(registry, settings, server.port)
  const controllers = startControllers(registry, network, settings, log)
  const end = async () => {
    await server.close()
    await controllers.close()
    dataFile?.close()
  }
  if (settings.answerDelayMs > 0) faults.delayAnswers(settings.answerDelayMs)
  if (settings.failFraction > 0) faults.failFraction(settings.failFraction)
  const url = `https://${address}:${server.port}`
  const needsFolder = settings.kubeconfigPath === undefined && dataDir === undefined
  let folder: string | undefined
  let kubeconfigPath: string
  try {
    if (needsFolder)
      folder = writing('kubeconfig', () => mkdtempSync(join(tmpdir(), `kpng-playground-${process.pid}-`)))
    kubeconfigPath = settings.kubeconfigPath ?? join(folder ?? dataDir ?? '', 'kubeconfig')
    writing('kubeconfig', () => writeKubeconfig(kubeconfigPath, { url, caPem, token }))
  } catch (error) {
    await end()
    throw error
  }
  log.detail(1, 'The playground is ready', { url, kubeconfig: kubeconfigPath })
  let closing: Promise<void> | undefined
  const close = async () => {
    await end()
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
  return {
    url,
    kubeconfigPath,
    caPem,
    token,
    nodeName: settings.nodeNames[0] ?? '',
    objects: new Objects(registry, maxGracePeriodSeconds),
    faults,
    get revision() {
      return store.revision
    },
    close: () => (closing ??= close()),
  }
}
