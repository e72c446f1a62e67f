import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { textLog } from '@kpng/client'
import { answerRequests } from '@kpng/linux/testing'
import { type UserspaceBackend, userspaceBackend } from '../backend.js'
import type { Capture } from '../capture/capture.js'
import { iptablesCapture } from '../capture/iptables.js'
import { nftCapture } from '../capture/nft.js'
import { noCapture } from '../capture/none.js'
import { parsePortRange } from '../capture/proxy-ports.js'
import { Cluster, endpoint, type service } from './cluster.js'
import { load, startDownload } from './load.js'
import { ask, outcome, type TestServer, tcpServer, udpClient, udpServer } from './peers.js'

// Runs inside one network namespace of a lab and does what the test asks for, one request at a time or several at once.

export interface ProxySettings {
  readonly capture: 'nft' | 'iptables' | 'none'
  readonly table?: string
  readonly portRange?: string
  readonly bindAddresses?: string[]
  readonly syncPeriodMs?: number
  readonly udpIdleTimeoutMs?: number
  readonly drainSeconds?: number
  readonly verbosity?: number
  readonly allowLoopback?: boolean
  readonly nodePortAddresses?: string[]
  readonly mover?: 'splice' | 'portable'
  /** A URL. Without one, TCP cannot be forwarded by splice. */
  readonly spliceScript?: string
}

let backend: UserspaceBackend | undefined
let cluster: Cluster | undefined
const servers = new Map<string, TestServer>()
const clients = new Map<string, Awaited<ReturnType<typeof udpClient>>>()

function captureOf({ capture, table, portRange, bindAddresses }: ProxySettings, verbosity: number): Capture {
  const log = textLog({ verbosity })
  const range = portRange === undefined ? undefined : parsePortRange(portRange)
  const options = {
    log,
    ...(table ? { table } : {}),
    ...(range ? { portRange: range } : {}),
    ...(bindAddresses ? { bindAddresses } : {}),
  }
  return capture === 'nft' ? nftCapture(options) : capture === 'iptables' ? iptablesCapture(options) : noCapture()
}

const methods = {
  async startProxy(settings: ProxySettings): Promise<void> {
    const { verbosity = 0, capture: _, table: _table, portRange: _range, bindAddresses: _bind, ...more } = settings
    const { spliceScript, ...options } = more
    backend = userspaceBackend({
      log: textLog({ verbosity }),
      capture: captureOf(settings, verbosity),
      syncPeriodMs: 0,
      ...options,
      ...(spliceScript === undefined ? {} : { spliceScript: new URL(spliceScript) }),
    })
    await backend.setup({ requestFullSync: () => {} })
    cluster = new Cluster(backend)
  },
  async stopProxy(): Promise<void> {
    await backend?.close()
    backend = undefined
  },
  /** What `kpng cleanup` does, in a process that never proxied. */
  cleanup: (settings: ProxySettings): Promise<void> => captureOf(settings, 0).cleanup(),
  counters: async () => [...(backend?.observations.traffic ?? [])],
  failures: async () => [...(backend?.observations.failures() ?? [])],
  setNode: async (node: { addresses?: string[]; podCidrs?: string[] }): Promise<void> => cluster?.setNode(node),
  setService: async (
    name: string,
    init: Parameters<typeof service>[1] | null,
    endpoints: Parameters<typeof endpoint>[] = [],
  ): Promise<void> =>
    cluster?.set(
      name,
      init ?? undefined,
      // A port that is left out comes as null.
      endpoints.map(([ip, port, more]) => endpoint(ip, port ?? undefined, more)),
    ),
  async serveTcp(ip: string, port: number, name: string): Promise<void> {
    // Says its name and who the client is; a client that asks for a stream gets bytes until it leaves.
    const serve = startDownload(name)
    servers.set(`${ip}|${port}|tcp`, await tcpServer(ip, name, { port, serve }))
  },
  async serveUdp(ip: string, port: number, name: string): Promise<void> {
    servers.set(`${ip}|${port}|udp`, await udpServer(ip, name, port))
  },
  async stopServing(ip: string, port: number, protocol: 'tcp' | 'udp'): Promise<void> {
    await servers.get(`${ip}|${port}|${protocol}`)?.close()
    servers.delete(`${ip}|${port}|${protocol}`)
  },
  ask: (ip: string, port: number, say?: string) => ask(ip, port, say),
  /** The answer, the error's code, or "timeout". */
  outcome: (ip: string, port: number, timeoutMs = 1500): Promise<string> =>
    Promise.race([outcome(ip, port), new Promise<string>((resolve) => setTimeout(resolve, timeoutMs, 'timeout'))]),
  /** `client` names a socket that keeps its port from question to question. */
  async udpAsk(
    client: string,
    localIp: string,
    ip: string,
    port: number,
    text: string,
    localPort = 0,
  ): Promise<string> {
    const socket = clients.get(client) ?? (await udpClient(localIp, localPort))
    clients.set(client, socket)
    return socket.ask(ip, port, text)
  },
  load,
  run: async (program: string, args: string[]): Promise<string> =>
    execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' }),
  sysctl: async (name: string, value: string): Promise<void> =>
    writeFileSync(`/proc/sys/${name.replaceAll('.', '/')}`, value),
}

export type AgentMethods = typeof methods

answerRequests(methods)
