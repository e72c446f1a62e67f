import type { ServerResponse } from 'node:http'
import type { AgentStatus, ServiceRow, SyncAnswer } from '@kpng/api'
import type { FrontendTable } from '@kpng/dataplane'
import type { Activity } from './activity.js'
import { serviceRow, serviceRows } from './rows.js'

export interface StreamOptions {
  readonly activity: Activity
  readonly frontends: FrontendTable
  readonly status: () => AgentStatus
}

/** Changes within this time are sent together: nobody sees more than a few of them per second. */
const coalesceMs = 100
/** A comment line is sent this often, so that a reader that is gone is noticed. */
const keepAliveMs = 15_000
/** A reader that is further behind than this is ended: it starts again with a new snapshot. */
const maxUnreadBytes = 8 * 1024 * 1024

/** Sends server-sent events: `snapshot` first, then `changes` as they come. Ends when the reader goes. */
export function streamEvents(response: ServerResponse, { activity, frontends, status }: StreamOptions): void {
  response.writeHead(200, {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  const send = (event: string, data: object) => {
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    if (response.writableLength > maxUnreadBytes) response.destroy()
  }
  const sendSnapshot = () => {
    const services = activity.view ? serviceRows(activity.view, frontends) : []
    send('snapshot', { status: status(), services, changes: activity.syncs.slice(-100) })
  }
  sendSnapshot()
  let waiting: Waiting | undefined
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    const { syncs, services, isWhole } = waiting as Waiting
    waiting = undefined
    timer = undefined
    if (isWhole) sendSnapshot()
    else send('changes', { status: status(), syncs, services: Object.fromEntries(services) })
  }
  const forget = activity.onChange((sync, view) => {
    waiting ??= { syncs: [], services: new Map(), isWhole: false }
    waiting.syncs.push(sync)
    waiting.isWhole ||= sync.full || sync.moreServices > 0
    for (const { service } of sync.services) {
      const item = view.services.get(service)
      waiting.services.set(service, item ? serviceRow(service, item, frontends) : null)
    }
    timer ??= setTimeout(flush, coalesceMs)
  })
  const keepAlive = setInterval(() => response.write(': \n\n'), keepAliveMs).unref()
  response.on('close', () => {
    forget()
    clearTimeout(timer)
    clearInterval(keepAlive)
  })
}

interface Waiting {
  readonly syncs: SyncAnswer[]
  /** By `namespace/name`; null for those that are gone. */
  readonly services: Map<string, ServiceRow | null>
  /** More changed than a sync lists. */
  isWhole: boolean
}
