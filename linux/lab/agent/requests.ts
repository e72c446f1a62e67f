import { createInterface } from 'node:readline'

// What a lab and its agents say to each other: one JSON object per line, over the agent's standard input and output.

/** What can be asked of an agent, by name. Arguments and results are JSON. */
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>

export interface Request {
  readonly id: number
  readonly method: string
  readonly args: readonly unknown[]
}

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  /** The first line of an agent: it accepts requests. */
  | { readonly ready: true }

/** Answers requests until standard input ends, and then ends the process: an agent never outlives its lab. */
export function answerRequests(methods: Methods): void {
  const say = (answer: Answer) => void process.stdout.write(`${JSON.stringify(answer)}\n`)
  process.stdout.on('error', () => process.exit(0))
  // The lab handles signals of the terminal: it needs its agents until it has cleaned up.
  process.on('SIGINT', () => {})
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const { id, method, args } = JSON.parse(line) as Request
      try {
        const work = methods[method]
        if (!work) throw new Error(`there is no method "${method}"`)
        say({ id, result: (await work(...(args as never[]))) ?? null })
      } catch (error) {
        say({ id, error: error instanceof Error ? error.message : String(error) })
      }
    })
    .on('close', () => process.exit(0))
  say({ ready: true })
}
