import { messageOf } from '@kpng/api'
import { answerRequests } from '@kpng/linux/lab'
import type { EchoIdentity, EchoPort } from '@kpng/playground'
import { call } from './caller.js'
import type { SyncTimes } from './session.js'

// What runs in the network namespaces of the playground's lab: one process in each pod, one on the node.

/** What the node has to tell: a sync, a line for the log, or why it gave up. */
export type News = { readonly sync: SyncTimes } | { readonly line: string } | { readonly failure: string }

const news: News[] = []
let wake = () => {}
function tell(item: News): void {
  news.push(item)
  wake()
}

const podMethods = {
  async listen(identity: EchoIdentity, addresses: readonly string[], ports: readonly EchoPort[]): Promise<void> {
    const { EchoServer } = await import('@kpng/playground')
    await new EchoServer(identity).listen(addresses, ports)
  },
}

const nodeMethods = {
  call,

  /** Lets kpng's nftables backend program the kernel of this namespace, from the kpng API at `api`. */
  async program(api: string, nodeName: string, podCidr: string, verbosity: number): Promise<void> {
    const { nftBackend } = await import('@kpng/backend-nft')
    const { changeSetsOverGrpc, runBackend, textLog } = await import('@kpng/client')
    const { quietLog } = await import('../log.js')
    const { demoKey } = await import('./session.js')
    const log = quietLog(textLog({ verbosity, write: (line) => tell({ line }) }))
    const backend = nftBackend({ log, detectLocal: { mode: 'ClusterCIDR', cidrs: [podCidr] } })
    void runBackend(backend, {
      changeSets: changeSetsOverGrpc({ api, log }),
      nodeName,
      log,
      signal: new AbortController().signal,
      onSync: ({ changes, startedAtMs, durationMs, error }) => {
        if (error === undefined && (changes.full || changes.services.has(demoKey)))
          tell({ sync: { startedAtMs, endedAtMs: startedAtMs + durationMs } })
      },
    }).catch((error: unknown) => tell({ failure: messageOf(error) }))
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
