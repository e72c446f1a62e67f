import assert from 'node:assert/strict'
import { addresses, addressOf, type Case, cases, type Name } from '../../nft/testing/cases.js'
import { Lab, type Place } from '../../nft/testing/lab.js'
import { ProxyProcess } from '../../nft/testing/proxy-process.js'
import { runChecks } from './checks.js'

// Real packets through IPVS, in the lab of the nft backend: its table of packet flows, then new connections while the proxy restarts, while
// endpoints come and go, and while the node changes to the nft backend and back. Prints a line per check.
// Arguments: the bundled programs of the agent and of proxy.ts, and how many connections.

const [agent = '', program = '', connections = '1000'] = process.argv.slice(2)
/** Only a connection that hangs takes so long, also where everything is slow. */
const timeoutMs = 30_000
const atOnce = 10

const lab = await Lab.build([process.execPath, agent])
const ipvs = new ProxyProcess(program, lab.namespace('node'))
const nft = new ProxyProcess(program, lab.namespace('node'))

const nameIn = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

/** Which of the node's addresses a masqueraded packet gets is the kernel's choice. */
const nameOf = (address: string): string => (nameIn(address) === 'otherNodeAddress' ? 'node' : nameIn(address))

/** The node has the address of a Service, so it refuses its other ports itself. Node ports are open on all addresses. */
const isOtherHere = ({ expected, to }: Case): boolean => expected === 'passed' || (to as string) === 'otherNodeAddress'

/** What is wrong with one flow; undefined: nothing. */
async function checkFlow(row: Case, family: 'ip' | 'ip6'): Promise<string | undefined> {
  const { from, to, port, protocol = 'tcp', expected } = row
  const isQuick = typeof expected === 'string'
  const answers = await lab.ask(from, {
    ...{ to: addressOf(to, family), port, protocol },
    ...{ count: isQuick ? 1 : 6, timeoutMs: expected === 'dropped' ? 1500 : timeoutMs },
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

/** New connections to the Service web, from outside and from a pod, over both families. */
class Callers {
  readonly #failed: string[] = []
  #done = 0

  get done(): number {
    return this.#done
  }

  async call(count: number): Promise<void> {
    const until = this.#done + count
    while (this.#done < until) {
      const from: Place = this.#done % (4 * atOnce) < 2 * atOnce ? 'client' : 'podA2'
      const to = addressOf('web', this.#done % (2 * atOnce) < atOnce ? 'ip' : 'ip6')
      const answers = await lab.ask(from, { to, port: 80, count: atOnce, timeoutMs })
      for (const answer of answers) if (!answer.startsWith('pod')) this.#failed.push(`${from} → ${to}: ${answer}`)
      this.#done += answers.length
    }
    assert.deepEqual(this.#failed, [])
  }
}

/** A connection that stays open: who answers on it. */
const askAgain = (flow: string): Promise<string[]> =>
  lab.ask('client', { to: addressOf('web', 'ip'), port: 80, timeoutMs, flow })

/** A UDP client with one socket must be served all the time; it may get another endpoint. */
async function checkUdpClient(): Promise<void> {
  const answers = await lab.ask('client', {
    to: addressOf('web', 'ip'),
    port: 53,
    protocol: 'udp',
    timeoutMs,
    flow: 'UDP',
  })
  assert.match(answers.join(), /^pod/)
}

const code = await runChecks(
  {
    'packets go as the table says': async () => {
      await ipvs.start(['ipvs'], 'synced')
      const rows = (['ip', 'ip6'] as const).flatMap((family) => cases.map((row) => [row, family] as const))
      const wrong: string[] = []
      for (let at = 0; at < rows.length; at += atOnce) {
        const part = rows.slice(at, at + atOnce).filter(([row]) => !isOtherHere(row))
        const problems = await Promise.all(part.map(([row, family]) => checkFlow(row, family)))
        wrong.push(...problems.flatMap((problem) => problem ?? []))
      }
      assert.deepEqual(wrong, [])
    },

    'no connection fails while endpoints come and go and the proxy is killed and started': async () => {
      await ipvs.kill()
      const callers = new Callers()
      let isOver = false
      const calling = callers.call(Number(connections)).finally(() => {
        isOver = true
      })
      let restarts = 0
      for (; !isOver; restarts++) {
        await ipvs.start(['ipvs', 'churn'], 'synced')
        await Promise.race([calling.catch(() => {}), new Promise((resolve) => setTimeout(resolve, 1500))])
        await ipvs.kill()
      }
      await calling
      return `${callers.done} connections, ${restarts} restarts`
    },

    'no connection fails when the node changes from IPVS to nftables and back': async () => {
      const callers = new Callers()
      const part = Math.ceil(Number(connections) / 5)
      await ipvs.start(['ipvs'], 'synced')
      const inIpvs = await askAgain('in IPVS')
      await checkUdpClient()
      await callers.call(part)

      // Each starts while connections are opened.
      await Promise.all([nft.start(['nft'], 'synced'), callers.call(part)])
      assert.deepEqual(await askAgain('in IPVS'), inIpvs, 'a connection in IPVS goes on while both are there')
      await checkUdpClient()
      await ipvs.kill()
      await Promise.all([ipvs.run('ipvs', 'cleanup'), callers.call(part)])
      assert.deepEqual(await askAgain('in IPVS'), ['ECONNRESET'], 'a connection in IPVS ends with the clean-up')
      const inNft = await askAgain('in nftables')
      await checkUdpClient()

      await Promise.all([ipvs.start(['ipvs'], 'synced'), callers.call(part)])
      await checkUdpClient()
      await nft.kill()
      await Promise.all([nft.run('nft', 'cleanup'), callers.call(part)])
      assert.deepEqual(await askAgain('in nftables'), inNft, 'a connection that nftables began goes on')
      await checkUdpClient()
      return `${callers.done} connections`
    },
  },
  async () => {
    await ipvs.kill()
    await nft.kill()
  },
)
await lab.remove()
process.exit(code)
