import { Agent } from '@kpng/linux/testing'
import { bundle as bundleProgram } from '../../../linux/testing/bundle.js'
import type { AgentMethods } from './agent.js'

// Other processes that do what a test asks for.

type Remote = {
  [K in keyof AgentMethods]: (...args: Parameters<AgentMethods[K]>) => Promise<Awaited<ReturnType<AgentMethods[K]>>>
}

/** Every method runs in the other process. */
export type Machine = Remote & { readonly kill: () => Promise<void> }

/** The agent is TypeScript; Node in a namespace needs it in one plain file. */
export const bundleAgent = (outfile: string): Promise<void> => bundle('agent.ts', outfile)

/** One file of this folder and all that it imports. */
export const bundle = (name: string, outfile: string): Promise<void> =>
  bundleProgram(new URL(name, import.meta.url), outfile)

/** Starts an agent behind a command, such as one that sets a limit. */
export const startAgent = async (command: readonly string[], program: string): Promise<Machine> =>
  machineOf(
    await Agent.start<AgentMethods>('a process', [...command, process.execPath, program], { errors: 'inherit' }),
  )

/** An agent whose methods are called like one's own. */
export const machineOf = (agent: Agent<AgentMethods>): Machine =>
  new Proxy({} as Machine, {
    get: (_, method: string) => {
      if (method === 'kill') return () => agent.stop()
      // What is awaited is looked at for this one.
      if (method === 'then') return undefined
      return (...args: never[]) => agent.call(method as keyof AgentMethods, ...(args as never))
    },
  })
