import { userspaceBackend } from '@kpng/backend-userspace'
import { runBackend } from '@kpng/client'
import { changeSetsOf } from '@kpng/core/sinks/local'
import { type Context, type Flags, given, textFlag } from '../context.js'
import { call } from './caller.js'
import { claimRange, firstRange } from './claim.js'
import { addressText } from './demo-service.js'
import { type DataPlane, demoKey } from './session.js'

/** The userspace proxy in this process, on loopback: for everybody, on every system. */
export async function loopbackDataPlane(flags: Flags, { log, signal }: Context): Promise<DataPlane> {
  // A folder of objects keeps their addresses, so it cannot move to another range.
  const fixed = textFlag(flags, 'serviceCidr') ?? (textFlag(flags, 'dataDir') && firstRange)
  const claim = await claimRange(fixed)
  const { range, neighbour } = claim
  return {
    title: "kpng's userspace proxy on loopback",
    ...given('note', neighbour && `Another playground (${neighbour}) has ${firstRange}; this one has ${range}.`),
    servesApiService: process.getuid?.() === 0,
    options: { serviceCidrs: range.split(',') },
    call,
    hints: (service) => {
      if (!service?.target) return []
      const { nodePort } = service
      return [
        { command: `curl http://${addressText(service)}`, effect: 'a pod answers' },
        ...(nodePort === undefined ? [] : [{ command: `curl http://127.0.0.1:${nodePort}`, effect: 'the node port' }]),
      ]
    },
    serve: (store, nodeName, onSync) =>
      runBackend(
        // The pods are on loopback, where a real proxy must not lead to. Node ports are on loopback too: nothing of a playground is
        // reachable from another machine.
        userspaceBackend({ log, allowLoopback: true, nodePortAddresses: ['localhost'] }),
        {
          changeSets: changeSetsOf(store),
          nodeName,
          log,
          signal,
          onSync: ({ changes, startedAtMs, durationMs, error }) => {
            const isDemo = changes.full || changes.services.has(demoKey)
            if (isDemo && error === undefined) onSync({ startedAtMs, endedAtMs: startedAtMs + durationMs })
          },
        },
      ),
    close: async () => claim.close(),
  }
}
