import { parentPort, workerData } from 'node:worker_threads'
import type { Log, LogFields } from '@kpng/api'
import type { ConnectionRecord } from '@kpng/client'
import { EventLoop, loadTcp, Pipes } from '@kpng/linux/tcp'
import type { ServicePortCounters } from '../counters.js'
import { Descriptors } from '../descriptors.js'
import type { Entrance } from '../entrance.js'
import { LocalForwarder } from '../forwarder.js'
import { Insiders } from '../insiders.js'
import { OwnSockets } from '../own-sockets.js'
import type { ProxySocket } from '../proxy-socket.js'
import type { SpliceTools } from './carrier.js'
import { countersIn } from './counters.js'
import type { LogLevel, Report, Request, WorkerData, WorkerMethods } from './messages.js'
import { SpliceProxySocket } from './proxy-socket.js'

// A thread that forwards TCP. It knows the portals and their endpoints and decides itself: whatever the main thread does
// meanwhile, connections go on.

const port = parentPort as NonNullable<typeof parentPort>
const report = (message: Report): void => port.postMessage(message)

const wishes = { verbosity: 0, connections: false }
const say = (level: LogLevel) => (message: string, fields?: LogFields) => report({ is: 'log', level, message, fields })
const log: Log = {
  error: say('error'),
  warn: say('warn'),
  info: say('info'),
  detail: (level, message, fields) => {
    if (level <= wishes.verbosity) say(level)(message, fields)
  },
  shows: (level) => level <= wishes.verbosity,
}

const data = workerData as WorkerData
const calls = await loadTcp()
const loop = new EventLoop(calls, data.wake, (error) =>
  log.error('A connection failed unexpectedly; others go on. Please report this', { error: (error as Error).stack }),
)
const descriptors = new Descriptors(log, data.openFilesLimit, data.openFiles, loop.later)
const pipes = new Pipes(calls, (files) => (files > 0 ? descriptors.add(files) : descriptors.remove(-files)))
const tools: SpliceTools = { calls, loop, pipes, descriptors }

/** Of service ports that are about to be made. */
const counters = new Map<string, ServicePortCounters>()
const sockets = new Map<number, ProxySocket>()
const observations = { listener: {} }
const forwarder = new LocalForwarder({
  log,
  clock: { now: () => performance.now(), random: Math.random },
  counters: {
    add: (name) => counters.get(name) as ServicePortCounters,
    remove: (name) => void counters.delete(name),
  },
  descriptors,
  insiders: new Insiders(),
  ownSockets: new OwnSockets(),
  later: loop.later,
  dialTimeoutsMs: data.dialTimeoutsMs,
  drainMs: data.drainMs,
  // No UDP here.
  udpIdleTimeoutMs: 0,
  maxUdpSessions: 0,
  observations,
})

const methods: WorkerMethods = {
  wish({ verbosity, connections }) {
    wishes.verbosity = verbosity
    const connectionEnded = (record: ConnectionRecord) => report({ is: 'ended', record })
    observations.listener = connections ? { connectionEnded } : {}
  },
  setInside: (addresses) => forwarder.setInside(addresses),
  setServicePort(name, portals, memory) {
    if (memory) counters.set(name, countersIn(memory))
    forwarder.setServicePort(name, portals)
  },
  applied: () => forwarder.applied(),
  async listen(portalId, place, fd) {
    const open = async (entrance: Entrance) => new SpliceProxySocket(entrance, place, fd, tools)
    sockets.set(fd, await forwarder.listenWith(portalId, open))
  },
  async stopListening(fd) {
    await sockets.get(fd)?.close()
    sockets.delete(fd)
  },
  held: (portalId) => forwarder.held(portalId),
  open: (limit) => forwarder.open(limit),
  cleanUpStaleSessions: () => forwarder.cleanUpStaleSessions(),
  abortAll: () => forwarder.abortAll(),
  async close() {
    await forwarder.close()
    pipes.close()
    loop.close()
  },
}

port.on('message', async ({ method, args, id }: Request) => {
  const value = await (methods[method] as (...args: readonly unknown[]) => unknown)(...args)
  if (id !== undefined) report({ is: 'answer', id, value })
  // Nothing keeps the thread then.
  if (method === 'close') port.close()
})
loop.run()
report({ is: 'ready' })
