import { type ChildProcess, spawn } from 'node:child_process'
import { bundle as bundleProgram } from '../../../linux/testing/bundle.js'
import type { AgentMethods } from './agent.js'

// Other processes that do what a test asks for.

type Remote = {
  [K in keyof AgentMethods]: (...args: Parameters<AgentMethods[K]>) => Promise<Awaited<ReturnType<AgentMethods[K]>>>
}

/** Every method runs in the other process. */
export type Machine = Remote & { readonly child: ChildProcess }

/** The agent is TypeScript; Node in a namespace needs it in one plain file. */
export const bundleAgent = (outfile: string): Promise<void> => bundle('agent.ts', outfile)

/** One file of this folder and all that it imports. */
export const bundle = (name: string, outfile: string): Promise<void> =>
  bundleProgram(new URL(name, import.meta.url), outfile)

/** Starts an agent behind a command, such as one that enters a namespace or sets a limit. */
export function startAgent([command = process.execPath, ...args]: readonly string[], program: string): Machine {
  const child = spawn(command, [...args, ...(command === process.execPath ? [] : [process.execPath]), program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  let id = 0
  child.on('message', (answer: { id: number; result?: unknown; error?: string }) => {
    const caller = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.error !== undefined) caller?.reject(new Error(answer.error))
    else caller?.resolve(answer.result)
  })
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error(`the agent ended: ${[command, ...args].join(' ')}`))
  })
  return new Proxy({ child } as Machine, {
    get: (target, method: string) =>
      method === 'child' || method === 'then'
        ? Reflect.get(target, method)
        : (...args: unknown[]) =>
            new Promise((resolve, reject) => {
              waiting.set(++id, { resolve, reject })
              child.send({ id, method, args })
            }),
  })
}
