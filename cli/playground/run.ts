import { once } from 'node:events'
import { dirname } from 'node:path'
import { KpngError, type Log } from '@kpng/api'
import { userspaceBackend } from '@kpng/backend-userspace'
import { pause, runBackend, wholeNumber } from '@kpng/client'
import { type Server, serveApi } from '@kpng/core/sinks/api'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { loadConnection, watchKube } from '@kpng/core/sources/kube'
import { Store } from '@kpng/core/store'
import { type Playground, startPlayground } from '@kpng/playground'
import { booleanFlag, type Context, type Flags, given, textFlag } from '../context.js'
import { checkFolder } from '../files.js'
import { demoAddress, keepCalling } from './caller.js'
import { guide, makeDemo } from './demo.js'

/** A whole cluster in one process: API server and pods, kpng's core, a userspace proxy, and somebody who calls. */
export async function runPlayground(flags: Flags, context: Context): Promise<void> {
  const { log, signal } = context
  const dataDir = textFlag(flags, 'dataDir')
  const kubeconfigPath = textFlag(flags, 'kubeconfig')
  if (dataDir !== undefined) await checkFolder('--data-dir', dataDir)
  if (kubeconfigPath !== undefined) await checkFolder('--kubeconfig', dirname(kubeconfigPath))
  const playground = await startPlayground({
    log,
    port: wholeNumber('--port', textFlag(flags, 'port') ?? '0'),
    ...given('serviceCidrs', textFlag(flags, 'serviceCidr')?.split(',')),
    ...given('podCidr', textFlag(flags, 'podCidr')),
    ...given('dataDir', dataDir),
    ...given('kubeconfigPath', kubeconfigPath),
  })
  const store = new Store()
  let server: Server | undefined
  try {
    server = await serveSomewhere(store, textFlag(flags, 'listen'), context)
    const demo = booleanFlag(flags, 'demo', true)
    if (demo) makeDemo(playground)
    const address = demoAddress(playground)
    if (demo && address !== undefined) console.log(guide(playground.kubeconfigPath, server.address, address))
    else console.log(`\nexport KUBECONFIG=${playground.kubeconfigPath}\n`)
    let proxying = () => {}
    const firstSync = new Promise<void>((resolve) => {
      proxying = resolve
    })
    await Promise.all([
      watch(playground, store, context),
      proxy(playground, store, log, signal, proxying),
      demo &&
        Promise.race([firstSync, once(signal, 'abort')]).then(() =>
          keepCalling(playground, signal, console.log, pause),
        ),
    ])
  } finally {
    await server?.close(500)
    await playground.close()
  }
}

async function watch(playground: Playground, store: Store, { log, signal, events }: Context): Promise<void> {
  const connection = await loadConnection({ kubeconfig: playground.kubeconfigPath })
  try {
    await watchKube({ store, log, signal, connection, onEvent: () => events.countApiEvents(1) })
  } finally {
    await connection.close()
  }
}

async function proxy(
  playground: Playground,
  store: Store,
  log: Log,
  signal: AbortSignal,
  onSync: () => void,
): Promise<void> {
  // The pods are on loopback, where a real proxy must not lead to. Node ports are on loopback too: nothing of a playground is
  // reachable from another machine.
  const backend = userspaceBackend({ log, allowLoopback: true, nodePortAddresses: ['localhost'] })
  await runBackend(backend, { changeSets: changeSetsOf(store), nodeName: playground.nodeName, log, signal, onSync })
}

/** The usual address when it is free; a first try should not fail because something else runs there. */
async function serveSomewhere(store: Store, listen: string | undefined, { log, events }: Context): Promise<Server> {
  const onSent = (items: number) => events.countNodeLocalEvents(items)
  try {
    return await serveApi({ store, log, onSent, ...given('listen', listen) })
  } catch (error) {
    if (!(error instanceof KpngError) || error.code !== 'unavailable') throw error
    log.warn('The kpng API is served elsewhere', { reason: error.message })
    return await serveApi({ store, log, onSent, listen: 'tcp://127.0.0.1:0' })
  }
}
