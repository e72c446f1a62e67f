import { userspaceBackend } from '@kpng/backend-userspace'
import { runBackend } from '@kpng/client'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { serviceFactsOf } from '@kpng/core/view'
import { type Context, type Flags, given, textFlag } from '../context.js'
import { serviceAnswer } from '../explain.js'
import { makeAgentSocketPath, removeAgentSocketFolder, startPlaygroundAgent } from './agent.js'
import { call } from './caller.js'
import { claimRange, firstRange } from './claim.js'
import { addressText } from './demo-service.js'
import { type DataPlane, demoKey } from './session.js'

/** The userspace proxy in this process, on loopback: for everybody, on every system. */
export async function loopbackDataPlane(
  flags: Flags,
  { log, signal, version, source, kube }: Context,
): Promise<DataPlane> {
  // A folder of objects keeps their addresses, so it cannot move to another range.
  const fixed = textFlag(flags, 'serviceCidr') ?? (textFlag(flags, 'dataDir') && firstRange)
  const claim = await claimRange(fixed)
  const { range, neighbour } = claim
  const agentSocket = makeAgentSocketPath()
  return {
    title: "kpng's userspace proxy on loopback",
    ...given('note', neighbour && `Another playground (${neighbour}) has ${firstRange}; this one has ${range}.`),
    servesApiService: process.getuid?.() === 0,
    options: { serviceCidrs: range.split(',') },
    agentSocket,
    call,
    hints: (service) => {
      if (!service?.target) return []
      const { nodePort } = service
      return [
        { command: `curl http://${addressText(service)}`, effect: 'a pod answers' },
        ...(nodePort === undefined ? [] : [{ command: `curl http://127.0.0.1:${nodePort}`, effect: 'the node port' }]),
      ]
    },
    serve: async (store, nodeName, onSync, hints) => {
      // The pods are on loopback, where a real proxy must not lead to. Node ports are on loopback too: nothing of a playground is
      // reachable from another machine.
      const backend = userspaceBackend({ log, allowLoopback: true, nodePortAddresses: ['localhost'] })
      const agent = await startPlaygroundAgent(backend, {
        ...{ socketPath: agentSocket, nodeName, version, log, source },
        serviceAnswer: (service) => serviceAnswer(service, store, {}, { kube, nodeName }),
        ...given('hints', hints),
        factsOf: serviceFactsOf(store, nodeName),
      })
      try {
        await runBackend(backend, {
          ...{ changeSets: changeSetsOf(store), nodeName, log, signal },
          ...agent.runner,
          onSync: (report) => {
            agent.runner.onSync(report)
            const { changes, startedAtMs, durationMs, error } = report
            const isDemo = changes.full || changes.services.has(demoKey)
            if (isDemo && error === undefined) onSync({ startedAtMs, endedAtMs: startedAtMs + durationMs })
          },
        })
      } finally {
        await agent.close()
      }
    },
    close: async () => {
      claim.close()
      removeAgentSocketFolder(agentSocket)
    },
  }
}
