import { messageOf } from '@kpng/api'
import { answerRequests } from '@kpng/linux/lab'
import type { EchoIdentity, EchoPort } from '@kpng/playground'
import { call } from './caller.js'
import type { Hint } from './screen.js'
import type { SyncTimes } from './session.js'

// What runs in the network namespaces of the playground's lab: one process in each pod, one on the node.

/** What the node has to tell: a sync, a line for the log, or why it gave up. */
export type News = { readonly sync: SyncTimes } | { readonly line: string } | { readonly failure: string }

const news: News[] = []
let wake = () => {}
let hints: readonly Hint[] = []
function tell(item: News): void {
  news.push(item)
  wake()
}

/** What the node of the lab is told. */
export interface LabNode {
  /** The kpng API. */
  readonly api: string
  readonly nodeName: string
  readonly podCidr: string
  /** Of kpng. */
  readonly version: string
  readonly verbosity: number
  /** Where the agent API's socket is made. */
  readonly folder: string
}

const podMethods = {
  async listen(identity: EchoIdentity, addresses: readonly string[], ports: readonly EchoPort[]): Promise<void> {
    const { EchoServer } = await import('@kpng/playground')
    await new EchoServer(identity).listen(addresses, ports)
  },
}

const nodeMethods = {
  call,

  /** Lets kpng's nftables backend program the kernel of this namespace, from a kpng API. */
  async program({ api, nodeName, podCidr, version, verbosity, folder }: LabNode): Promise<void> {
    const { nftBackend } = await import('@kpng/backend-nft')
    const { changeSetsOverGrpc, explainOverGrpc, runBackend, SourceStatus, textLog } = await import('@kpng/client')
    const { quietLog } = await import('../log.js')
    const { demoKey } = await import('./session.js')
    const { startPlaygroundAgent } = await import('./agent.js')
    const log = quietLog(textLog({ verbosity, write: (line) => tell({ line }) }))
    const backend = nftBackend({ log, detectLocal: { mode: 'ClusterCIDR', cidrs: [podCidr] } })
    const source = new SourceStatus()
    const agent = await startPlaygroundAgent(backend, {
      ...{ socketPath: `${folder}/agent.sock`, nodeName, version, log, source },
      serviceAnswer: (service) => explainOverGrpc(service, { api, nodeName }),
      hints: () => hints,
    })
    void runBackend(backend, {
      changeSets: changeSetsOverGrpc({ api, log, status: source.watch('core') }),
      nodeName,
      log,
      signal: new AbortController().signal,
      ...agent.runner,
      onSync: (report) => {
        agent.runner.onSync(report)
        const { changes, startedAtMs, durationMs, error } = report
        if (error === undefined && (changes.full || changes.services.has(demoKey)))
          tell({ sync: { startedAtMs, endedAtMs: startedAtMs + durationMs } })
      },
    }).catch((error: unknown) => tell({ failure: messageOf(error) }))
  },

  /** Commands to try, for the live page. */
  async setHints(given: readonly Hint[]): Promise<void> {
    hints = given
  },

  /** Waits for something to tell. */
  async news(): Promise<News[]> {
    while (news.length === 0)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    return news.splice(0)
  },
}

export type PodMethods = typeof podMethods
export type NodeMethods = typeof nodeMethods

export const runLabAgent = (): void => answerRequests({ ...podMethods, ...nodeMethods })
