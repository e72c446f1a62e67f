import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Faults } from './faults.js'
import { Kinds } from './kinds/index.js'
import { writeKubeconfig } from './kubeconfig.js'
import { type PlaygroundOptions, type Settings, settingsOf } from './options.js'
import { Registry } from './registry/registry.js'
import { seed } from './seed.js'
import { ApiServer } from './server/api-server.js'
import { Handler } from './server/handler.js'
import type { WatchSettings } from './server/watch.js'
import { ServiceNetwork } from './services/network.js'
import { Store } from './storage/store.js'
import { createAuthority } from './tls/certificates.js'

export interface Playground {
  readonly url: string
  readonly kubeconfigPath: string
  readonly caPem: string
  readonly token: string
  readonly registry: Registry
  readonly faults: Faults
  close(): Promise<void>
}

export async function startPlayground(options: PlaygroundOptions = {}): Promise<Playground> {
  const settings: Settings = settingsOf(options)
  const folder = mkdtempSync(join(tmpdir(), 'kpng-playground-'))
  const store = new Store({ logSize: settings.changeLogSize })
  const network = new ServiceNetwork(store, settings.nodePorts)
  const registry = new Registry(store, new Kinds(network))
  const authority = createAuthority('kpng-playground')
  const certificate = authority.issue('kube-apiserver', ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', settings.address])
  const token = settings.token ?? randomBytes(24).toString('base64url')
  const watchSettings: WatchSettings = {
    streamingLists: settings.streamingLists,
    bookmarks: settings.bookmarks,
    bookmarkIntervalMs: settings.bookmarkIntervalMs,
    expiredWatch: 'event',
  }
  const faults = new Faults(store, watchSettings, (downMs) => server.restart(downMs))
  const handler = new Handler({ registry, faults, watchSettings, token, maxGracePeriodSeconds: settings.maxGracePeriodSeconds, log: settings.log })
  const server = new ApiServer(settings.address, settings.port, certificate, handler.handle)
  await server.listen()
  seed(registry, settings, server.port)
  const url = `https://${settings.address}:${server.port}`
  const kubeconfigPath = settings.kubeconfigPath ?? join(folder, 'kubeconfig')
  writeKubeconfig(kubeconfigPath, { url, caPem: authority.certPem, token })
  return {
    url,
    kubeconfigPath,
    caPem: authority.certPem,
    token,
    registry,
    faults,
    close: async () => {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
