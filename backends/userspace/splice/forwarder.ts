import type { HeldFrontend } from '@kpng/client'
import { openFiles } from '@kpng/linux'
import { keepClientsTogether, listenTcp, loadTcp, type TcpSyscalls } from '@kpng/linux/tcp'
import type { Place } from '../capture/capture.js'
import type { Counters } from '../counters.js'
import type { Descriptors } from '../descriptors.js'
import type { Forwarder, OpenConnections } from '../forwarder.js'
import type { InsideAddresses } from '../insiders.js'
import type { Portal } from '../portal.js'
import type { ProxySocket } from '../proxy-socket.js'
import type { Surroundings } from '../surroundings.js'
import { sharedCounters, sumOf } from './counters.js'
import type { Wishes } from './messages.js'
import { Thread } from './thread.js'

export interface SpliceForwarderOptions
  extends Pick<Surroundings, 'log' | 'observations' | 'drainMs' | 'dialTimeoutsMs'> {
  readonly counters: Counters
  readonly descriptors: Descriptors
  /** How many threads. */
  readonly threads: number
  /** The script of a thread. */
  readonly script: URL
}

/** Enough for a burst; the kernel caps it at net.core.somaxconn. */
const backlog = 4096
/** There is none above. */
const largestVerbosity = 10

/** The sockets of one portal at one place: one for each thread. */
interface OpenSockets {
  readonly fds: readonly number[]
  /** Whether the kernel gives all connections of a client to the same thread. */
  together: boolean
}

/**
 * Forwards TCP in threads of its own. Each has a socket for each portal, knows all portals and endpoints, and decides itself; this class
 * tells them what changes, and opens sockets. A client whose Service has session affinity always comes to the same thread, which
 * remembers its endpoint.
 */
export class SpliceForwarder implements Forwarder {
  readonly #options: SpliceForwarderOptions
  readonly #calls: TcpSyscalls
  readonly #threads: readonly Thread[]
  readonly #known = new Set<string>()
  /** By the ids of portals. */
  readonly #open = new Map<string, Set<OpenSockets>>()
  #wishes: Wishes = { verbosity: 0, connections: false }

  private constructor(options: SpliceForwarderOptions, calls: TcpSyscalls, threads: readonly Thread[]) {
    this.#options = options
    this.#calls = calls
    this.#threads = threads
  }

  /** Rejects if this machine cannot do that. */
  static async start(options: SpliceForwarderOptions): Promise<SpliceForwarder> {
    const calls = await loadTcp()
    const { log, observations, drainMs, dialTimeoutsMs, descriptors, script } = options
    const { counts, limit } = descriptors
    const threads: Thread[] = []
    const filesBefore = openFiles() ?? 0
    try {
      for (let count = 0; count < options.threads; count++) {
        const data = { openFiles: counts, openFilesLimit: limit, drainMs, dialTimeoutsMs }
        const connectionEnded = (record: Parameters<NonNullable<typeof observations.listener.connectionEnded>>[0]) =>
          observations.listener.connectionEnded?.(record)
        threads.push(await Thread.start({ calls, script, data, log, connectionEnded }))
      }
    } catch (error) {
      for (const thread of threads) await thread.close()
      throw error
    }
    descriptors.add(Math.max(0, (openFiles() ?? 0) - filesBefore))
    return new SpliceForwarder(options, calls, threads)
  }

  setInside(addresses: InsideAddresses): void {
    this.tellWishes()
    for (const thread of this.#threads) thread.tell('setInside', addresses)
  }

  setServicePort(name: string, portals: readonly Portal[]): void {
    const isNew = !this.#known.has(name)
    if (isNew && portals.length === 0) return
    const memory = isNew ? sharedCounters(this.#threads.length) : undefined
    if (memory) this.#options.counters.set(name, sumOf(memory))
    if (portals.length > 0) this.#known.add(name)
    else {
      this.#known.delete(name)
      this.#options.counters.remove(name)
    }
    for (const portal of portals) for (const sockets of this.#open.get(portal.id) ?? []) this.#divide(portal, sockets)
    for (const [index, thread] of this.#threads.entries()) thread.tell('setServicePort', name, portals, memory?.[index])
  }

  /** Threads take messages in order. */
  async applied(): Promise<void> {
    await this.#each((thread) => thread.ask('applied'))
  }

  async listen(portal: Portal, at: Place): Promise<ProxySocket> {
    const { descriptors } = this.#options
    const { fds, address } = listenTcp(this.#calls, at, { sockets: this.#threads.length, backlog })
    const closed = fds.map(() => descriptors.listening())
    const sockets: OpenSockets = { fds, together: false }
    this.#divide(portal, sockets)
    const all = this.#open.get(portal.id) ?? new Set()
    this.#open.set(portal.id, all.add(sockets))
    const place = { ip: at.ip, port: address.port }
    // Nobody waits for the threads: until they have taken the socket, the kernel keeps its clients.
    for (const [index, thread] of this.#threads.entries()) thread.tell('listen', portal.id, place, fds[index] as number)
    return {
      place,
      close: async () => {
        all.delete(sockets)
        if (all.size === 0) this.#open.delete(portal.id)
        await this.#each((thread, index) => thread.ask('stopListening', fds[index] as number))
        for (const close of closed) close()
      },
    }
  }

  async held(portalId: string): Promise<HeldFrontend | undefined> {
    const parts = (await this.#each((thread) => thread.ask('held', portalId))).filter((part) => part !== undefined)
    const [first] = parts
    if (!first) return undefined
    const sessionAffinity = parts.flatMap((part) => part.sessionAffinity ?? [])
    const connections = parts.reduce((sum, part) => sum + (part.connections ?? 0), 0)
    return { ...first, connections, ...(first.sessionAffinity ? { sessionAffinity } : {}) }
  }

  async open(limit: number): Promise<OpenConnections> {
    const parts = await this.#each((thread) => thread.ask('open', limit))
    const newest = parts.flatMap(({ connections }) => connections).sort((a, b) => b.sinceMs - a.sinceMs)
    return { total: parts.reduce((sum, { total }) => sum + total, 0), connections: newest.slice(0, limit) }
  }

  cleanUpStaleSessions(): void {
    this.tellWishes()
    for (const thread of this.#threads) thread.tell('cleanUpStaleSessions')
  }

  abortAll(): void {
    for (const thread of this.#threads) thread.tell('abortAll')
  }

  async close(): Promise<void> {
    await this.#each((thread) => thread.close())
  }

  /** The verbosity and the listener may change at any time. */
  tellWishes(): void {
    const { log, observations } = this.#options
    let verbosity = largestVerbosity
    while (verbosity > 0 && !log.shows(verbosity)) verbosity--
    const connections = observations.listener.connectionEnded !== undefined
    if (verbosity === this.#wishes.verbosity && connections === this.#wishes.connections) return
    this.#wishes = { verbosity, connections }
    for (const thread of this.#threads) thread.tell('wish', this.#wishes)
  }

  #divide({ family, sessionAffinitySeconds }: Portal, sockets: OpenSockets): void {
    const together = sessionAffinitySeconds !== undefined
    if (together === sockets.together) return
    keepClientsTogether(this.#calls, sockets.fds[0] as number, family, sockets.fds.length, together)
    sockets.together = together
  }

  #each<T>(call: (thread: Thread, index: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#threads.map(call))
  }
}
