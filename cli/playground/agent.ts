import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Log, ServiceAnswer } from '@kpng/api'
import type { RunnerOptions, SourceStatus } from '@kpng/client'
import type { FrontendBackend } from '@kpng/dataplane'
import { sourceReport } from '@kpng/node'
import { Activity, agentApi, openSocket, type ServiceFactsOf } from '@kpng/node/agent-api'
import type { Hint } from './screen.js'

// The agent API of the playground's node: `kpng explain`, `get` and `status` ask it, and the live page is made from it.

/** Where it is: for this playground alone, since others may run beside it. */
export function makeAgentSocketPath(): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\kpng-playground-${process.pid}`
  return join(mkdtempSync(join(tmpdir(), `kpng-playground-${process.pid}-`)), 'agent.sock')
}

/** After the socket was closed. */
export function removeAgentSocketFolder(path: string): void {
  if (process.platform !== 'win32') rmSync(dirname(path), { recursive: true, force: true })
}

export interface PlaygroundAgentOptions {
  readonly socketPath: string
  readonly nodeName: string
  readonly version: string
  readonly log: Log
  /** How up to date the state is, if its source is in this process or tells. */
  readonly source?: SourceStatus
  /** What the core says about a Service. */
  readonly serviceAnswer: (service: string) => Promise<ServiceAnswer>
  /** What the core knows about the endpoints of a Service, if it is in this process. */
  readonly factsOf?: ServiceFactsOf
  /** Commands to try, for the live page. */
  readonly hints?: () => readonly Hint[]
}

export interface PlaygroundAgent {
  /** How the runner tells it what happens. */
  readonly runner: Pick<Required<RunnerOptions>, 'withSteps' | 'onQueued' | 'onFullSyncRequested' | 'onSync'>
  close(): Promise<void>
}

export async function startPlaygroundAgent(
  backend: FrontendBackend,
  options: PlaygroundAgentOptions,
): Promise<PlaygroundAgent> {
  const { socketPath, nodeName, version, log, serviceAnswer, factsOf, hints, source } = options
  const activity = new Activity(Date.now(), factsOf)
  const { frontends } = backend
  const mode = backend.features?.().name ?? 'kpng'
  const api = agentApi({
    ...{ nodeName, version, mode, activity, frontends, backend, serviceAnswer, log },
    ...(factsOf ? { factsOf } : {}),
    ...(hints ? { hints } : {}),
    ...(source ? { source: () => sourceReport(source) } : {}),
  })
  if (backend.observations) {
    const repaired = (services: readonly string[]) => api.live.onRepaired(services)
    backend.observations.listener = { ...backend.observations.listener, repaired }
  }
  const socket = await openSocket(socketPath, api.handler, log)
  return {
    runner: {
      withSteps: true,
      onQueued: (changes) => activity.onQueued(changes),
      onFullSyncRequested: (reason) => activity.onDrift(reason),
      onSync: (report) => activity.onSync(report),
    },
    close: async () => {
      api.close()
      await socket?.close()
    },
  }
}
