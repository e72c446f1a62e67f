import { chownSync } from 'node:fs'
import { dirname } from 'node:path'
import { KpngError } from '@kpng/api'
import { wholeNumber } from '@kpng/client'
import { type Server, serveApi } from '@kpng/core/sinks/api'
import { loadConnection, watchKube } from '@kpng/core/sources/kube'
import { Store } from '@kpng/core/store'
import { type Dashboard, defaultDashboard, forwardTo } from '@kpng/node/dashboard'
import { type Playground, type PlaygroundOptions, startPlayground } from '@kpng/playground'
import { dashboardPlace, openDashboard } from '../agent/dashboard.js'
import { KubeRequests } from '../agent/kube-requests.js'
import { booleanFlag, type Context, type Flags, given, textFlag } from '../context.js'
import { exitInTime, onUnreadOutput } from '../exit.js'
import { serviceAnswer } from '../explain.js'
import { checkFolder } from '../files.js'
import { quietLog } from '../log.js'
import { leaveApiServiceAlone, makeDemo } from './demo.js'
import { demoName, demoService } from './demo-service.js'
import { removeLeftovers } from './leftovers.js'
import { loopbackDataPlane } from './loopback.js'
import { render } from './screen.js'
import { type DataPlane, explainCommand, Session } from './session.js'
import { LogFile, Terminal, wantsColours } from './terminal.js'

/** A whole cluster in one process: API server and pods, kpng's core, a data plane, and somebody who calls. */
export async function runPlayground(flags: Flags, outer: Context): Promise<void> {
  const context = { ...outer, log: quietLog(outer.log), kube: new KubeRequests() }
  // A closed terminal window or pipe ends it as Ctrl-C does: there may be a lab to take down.
  process.once('SIGHUP', () => context.stop())
  onUnreadOutput(() => context.stop())
  exitInTime(context.signal, context.log)
  await checkPaths(flags)
  removeLeftovers()
  const dataPlane = await dataPlaneFor(flags, context)
  let playground: Playground | undefined
  let server: Server | undefined
  let dashboard: Dashboard | undefined
  try {
    playground = await startPlayground({ log: context.log, ...optionsFrom(flags), ...dataPlane.options })
    giveToCaller(playground.kubeconfigPath, flags)
    const store = new Store()
    const place = await dashboardPlace(flags, defaultDashboard)
    dashboard = place && (await openDashboard(place, forwardTo(dataPlane.agentSocket), context))
    server = await serveSomewhere(store, textFlag(flags, 'listen'), context)
    if (!dataPlane.servesApiService) leaveApiServiceAlone(playground)
    const demo = booleanFlag(flags, 'demo', true)
    if (demo) makeDemo(playground)
    for (const line of firstLines(playground, dataPlane, dashboard?.url)) console.log(line)
    await Promise.all([
      watch(playground, store, context),
      demo
        ? showDemo(playground, dataPlane, store, context.signal, {
            logsJson: textFlag(flags, 'logFormat') === 'json',
            ...given('page', dashboard?.url),
          })
        : dataPlane.serve(store, playground.nodeName, () => {}),
    ])
  } finally {
    // If one part failed, the others must end too.
    context.stop()
    await Promise.all([server?.close(500), dashboard?.close()])
    await playground?.close()
    await dataPlane.close()
  }
}

async function dataPlaneFor(flags: Flags, context: Context): Promise<DataPlane> {
  const lab = textFlag(flags, 'lab')
  if (lab === undefined) return loopbackDataPlane(flags, context)
  if (lab !== 'nft') throw new KpngError('usage', `--lab takes nft, not "${lab}".`)
  for (const [name, flag] of [
    ['serviceCidr', '--service-cidr'],
    ['podCidr', '--pod-cidr'],
    ['dataDir', '--data-dir'],
  ] as const) {
    if (textFlag(flags, name) === undefined) continue
    throw new KpngError('usage', `The lab has addresses of its own, made anew each time. Leave out ${flag}.`)
  }
  return (await import('./lab.js')).labDataPlane(context)
}

/** Before anything is started. */
async function checkPaths(flags: Flags): Promise<void> {
  const dataDir = textFlag(flags, 'dataDir')
  const kubeconfig = textFlag(flags, 'kubeconfig')
  if (dataDir !== undefined) await checkFolder('--data-dir', dataDir)
  if (kubeconfig !== undefined) await checkFolder('--kubeconfig', dirname(kubeconfig))
}

const optionsFrom = (flags: Flags): PlaygroundOptions => ({
  port: wholeNumber('--port', textFlag(flags, 'port') ?? '0'),
  ...given('podCidr', textFlag(flags, 'podCidr')),
  ...given('dataDir', textFlag(flags, 'dataDir')),
  ...given('kubeconfigPath', textFlag(flags, 'kubeconfig')),
})

/** With sudo, kubectl runs as the user who called it: the kubeconfig and its temporary folder are theirs. */
function giveToCaller(kubeconfigPath: string, flags: Flags): void {
  const { SUDO_UID, SUDO_GID } = process.env
  if (SUDO_UID === undefined || SUDO_GID === undefined || process.getuid?.() !== 0) return
  const isTemporary = flags.kubeconfig === undefined && flags.dataDir === undefined
  for (const path of [kubeconfigPath, ...(isTemporary ? [dirname(kubeconfigPath)] : [])])
    chownSync(path, Number(SUDO_UID), Number(SUDO_GID))
}

/** What stays on the terminal when the screen is gone: at most five lines. */
function firstLines(
  { kubeconfigPath, objects }: Playground,
  { title, note, hints, agentSocket }: DataPlane,
  page: string | undefined,
): string[] {
  const service = demoService(objects)
  const [first] = hints(service)
  return [
    `kpng playground: ${page === undefined ? '' : `${page} shows it live: `}an API server, pods, and ${title}. Ctrl-C ends it. In another terminal:`,
    ...(note === undefined ? [] : [note]),
    `  export KUBECONFIG=${kubeconfigPath}`,
    ...(service ? [`  kubectl scale deployment ${demoName} --replicas 5`] : []),
    ...(first ? [`  ${first.command}`] : []),
    ...(service && note === undefined ? [`  ${explainCommand({ agentSocket })}`] : []),
  ]
}

/** On a terminal a screen that follows what happens, else a line for each thing that does. */
async function showDemo(
  playground: Playground,
  dataPlane: DataPlane,
  store: Store,
  signal: AbortSignal,
  // The JSON log does not go through the stream that the screen takes over.
  { logsJson, page }: { readonly logsJson: boolean; readonly page?: string },
): Promise<void> {
  const { stdout, stderr } = process
  const hasScreen = stdout.isTTY && !(stderr.isTTY && logsJson)
  const log = hasScreen ? new LogFile() : undefined
  let terminal: Terminal | undefined
  const session = new Session(playground, dataPlane, (line) => {
    if (terminal) terminal.update()
    else if (line !== undefined) console.log(line)
  })
  try {
    if (log) {
      const draw = (columns: number, rows: number) =>
        render(
          {
            ...session,
            dataPlane: dataPlane.title,
            page,
            hints: session.hints(),
            logPath: log.path,
            warning: log.lastWarning,
          },
          columns,
          rows,
          wantsColours(stdout),
        )
      terminal = new Terminal(stdout, log, draw)
    }
    let begin = () => {}
    const firstEndpoint = new Promise<void>((resolve) => {
      begin = resolve
    })
    signal.addEventListener('abort', () => begin(), { once: true })
    await Promise.all([
      dataPlane.serve(
        store,
        playground.nodeName,
        (times) => {
          session.synced(times)
          if (session.service?.endpoints.some(({ state }) => state === 'ready')) begin()
        },
        () => session.hints(),
      ),
      firstEndpoint.then(() => session.callUntil(signal)),
    ])
  } finally {
    terminal?.close()
    if (log?.lastWarning === undefined) log?.remove()
    else console.log(`The last warning was: ${log.lastWarning}\nThe log is kept until the next start: ${log.path}`)
  }
}

async function watch(
  playground: Playground,
  store: Store,
  { log, signal, events, source, kube }: Context,
): Promise<void> {
  const connection = await loadConnection({ kubeconfig: playground.kubeconfigPath })
  kube?.connected(connection)
  try {
    await watchKube({ store, log, signal, connection, onEvent: () => events.countApiEvents(1), status: source })
  } finally {
    await connection.close()
  }
}

/** The usual address when it is free; a first try should not fail because something else runs there. */
async function serveSomewhere(
  store: Store,
  listen: string | undefined,
  { log, events, kube }: Context,
): Promise<Server> {
  const onSent = (items: number) => events.countNodeLocalEvents(items)
  const answerService = (service: string, nodeName: string) => serviceAnswer(service, store, {}, { kube, nodeName })
  try {
    return await serveApi({ store, log, onSent, answerService, ...given('listen', listen) })
  } catch (error) {
    if (!(error instanceof KpngError) || error.code !== 'unavailable') throw error
    log.info('The kpng API is served elsewhere', { reason: error.message })
    return await serveApi({ store, log, onSent, answerService, listen: 'tcp://127.0.0.1:0' })
  }
}
