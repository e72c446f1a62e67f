import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { addresses, addressOf, type Case, cases, type Name } from '../../nft/testing/cases.js'
import { Lab } from '../../nft/testing/lab.js'

// Real packets through IPVS, in the lab of the nft backend and with its table of packet flows.

const nameIn = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

/** Which of the node's addresses a masqueraded packet gets is the kernel's choice. */
const nameOf = (address: string): string => (nameIn(address) === 'otherNodeAddress' ? 'node' : nameIn(address))

/** The node has the address of a Service, so it refuses its other ports itself. Node ports are open on all addresses. */
const isOtherHere = ({ expected, to }: Case): boolean => expected === 'passed' || (to as string) === 'otherNodeAddress'

export interface TrafficResult {
  /** Flows that went another way than the table says. */
  readonly wrong: readonly string[]
  /** Flows that IPVS is known to treat otherwise. */
  readonly differing: readonly string[]
  /** Connections that failed while the proxy was killed and started, and endpoints came and went. */
  readonly failed: readonly string[]
  readonly restarts: number
}

/**
 * @param program the bundled proxy.ts
 * @param connections how many are opened during restarts and churn
 */
export async function checkTraffic(program: string, connections: number): Promise<TrafficResult> {
  const lab = await Lab.build()
  const proxy = new ProxyProcess(lab, program)
  try {
    await proxy.start()
    const flows = await checkFlows(lab)
    await proxy.kill()
    return { ...flows, ...(await checkRestarts(lab, proxy, connections)) }
  } finally {
    await proxy.kill()
    await lab.remove()
  }
}

class ProxyProcess {
  readonly #lab: Lab
  readonly #program: string
  #child: ChildProcess | undefined

  constructor(lab: Lab, program: string) {
    this.#lab = lab
    this.#program = program
  }

  async start(...args: string[]): Promise<void> {
    const command = ['netns', 'exec', this.#lab.namespace('node'), process.execPath, this.#program, ...args]
    const child = spawn('ip', command, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
    for await (const line of lines) if (line === 'synced') return
    throw new Error('The proxy ended.')
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    child?.kill('SIGKILL')
    if (child) await once(child, 'exit')
  }
}

/** What is wrong with one flow; undefined: nothing. */
async function checkFlow(lab: Lab, row: Case, family: 'ip' | 'ip6'): Promise<string | undefined> {
  const { from, to, port, protocol = 'tcp', expected } = row
  const isQuick = typeof expected === 'string'
  const answers = await lab.ask(from, {
    ...{ to: addressOf(to, family), port, protocol },
    ...{ count: isQuick ? 1 : 6, timeoutMs: expected === 'dropped' ? 1500 : 15_000 },
  })
  const problem = (text: string) =>
    `${family} ${from} → ${to}:${port}/${protocol} ${row.shows}: ${text}; got ${answers}`
  if (isQuick) return answers[0] === (expected as string) ? undefined : problem(`expected ${expected}`)
  for (const answer of answers) {
    const [server = '', source = ''] = answer.split(' ')
    if (!(expected.to as readonly string[]).includes(server)) return problem(`expected ${expected.to}`)
    // A pod that is given itself is masqueraded as a hairpin, whatever the policy.
    const seen = expected.masqueraded || server === from ? 'node' : from
    if (expected.masqueraded !== undefined && nameOf(source) !== seen) return problem(`expected source ${seen}`)
  }
  return undefined
}

async function checkFlows(lab: Lab): Promise<Pick<TrafficResult, 'wrong' | 'differing'>> {
  const wrong: string[] = []
  const differing: string[] = []
  const rows = (['ip', 'ip6'] as const).flatMap((family) => cases.map((row) => [row, family] as const))
  for (let at = 0; at < rows.length; at += flowsAtOnce) {
    const part = rows.slice(at, at + flowsAtOnce)
    const problems = await Promise.all(part.map(([row, family]) => checkFlow(lab, row, family)))
    for (const [index, problem] of problems.entries()) {
      const [row] = part[index] ?? []
      if (problem !== undefined && row) (isOtherHere(row) ? differing : wrong).push(problem)
    }
  }
  return { wrong, differing }
}

const flowsAtOnce = 8

async function checkRestarts(
  lab: Lab,
  proxy: ProxyProcess,
  connections: number,
): Promise<Pick<TrafficResult, 'failed' | 'restarts'>> {
  const failed: string[] = []
  let done = 0
  let restarts = 0
  const call = async () => {
    while (done < connections) {
      const from = done % 40 < 20 ? 'client' : 'podA2'
      const to = addressOf('web', done % 20 < 10 ? 'ip' : 'ip6')
      const answers = await lab.ask(from, { to, port: 80, count: 10, timeoutMs: 20_000 })
      for (const answer of answers) if (!answer.startsWith('pod')) failed.push(`${from} → ${to}: ${answer}`)
      done += answers.length
    }
  }
  const calling = call()
  while (done < connections) {
    await proxy.start('churn')
    restarts++
    await Promise.race([calling, new Promise((resolve) => setTimeout(resolve, 1500))])
    await proxy.kill()
  }
  await calling
  return { failed, restarts }
}
