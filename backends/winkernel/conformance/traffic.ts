import { hostPort, messageOf, servicePath } from '@kpng/api'
import { endpoint, ips, type TestService, tcp, udp } from '@kpng/client/testing'
import { removeOwn } from './clean.js'
import { askTcp, askUdp } from './clients.js'
import { compare } from './held.js'
import { type ConformanceOptions, TestedNode } from './node.js'
import { Checks, counted, type Report } from './report.js'
import { type NamedPods, serverPorts, startServers } from './servers.js'

const nodePort = 32_699
const requests = 20

/**
 * Opens connections from this machine through load balancers to two servers on it, and counts who answers. What one machine cannot show is
 * noted and not judged: Windows is known not to serve a node port to the node itself. What it made is removed at the end.
 */
export async function traffic(options: ConformanceOptions): Promise<Report> {
  const checks = new Checks()
  const node = await TestedNode.open(options)
  const pods = await startServers(node)
  const all = pods.map(({ ip }) => endpoint(ip, { local: true }))
  const service = (at: number, more: Partial<TestService>): TestService => ({
    ...{ name: `traffic-${at}`, ips: { clusterIps: ips(node.address(0, at)) }, endpoints: all },
    ports: [tcp(80, { targetPort: serverPorts.tcp })],
    ...more,
  })
  const affinity = { case: 'clientIp', value: { timeoutSeconds: 600 } } as const
  const outside = {
    ...{ clusterIps: ips(node.address(0, 204)), externalIps: ips(node.address(1, 204)) },
    loadBalancerIps: ips(node.address(2, 204)),
  }
  const services = [
    service(201, {}),
    service(202, { ports: [udp(53, { targetPort: serverPorts.udp })] }),
    service(203, { sessionAffinity: affinity }),
    service(204, { type: 'LoadBalancer', ips: outside }),
    ...(options.pods ? [] : [service(205, { ports: [tcp(80, { nodePort, targetPort: serverPorts.tcp })] })]),
  ]
  const { backend, core } = node.start(services)
  try {
    await core.sync()
    const failures = backend.observations?.failures?.() ?? new Map()
    const settings = node.settings()
    const { problems, held } = await compare(node, { frontends: backend.frontends, settings, services, failures })
    const documents = [...held.values()].flat()
    const sentence = `HNS holds ${counted(documents.length, 'load balancer')} as expected.`
    const missing = services.filter(({ name }) => !held.has(servicePath('default', name)))
    const sentences = [
      ...[...problems.values()].flat(),
      ...missing.map(({ name }) => `HNS holds nothing for the Service ${name}.`),
    ]
    checks.judge('load balancers', sentences, sentence, documents)
    const clients = new Clients(node, pods, checks)
    if (!(await clients.controls())) return checks.report('traffic')
    await clients.judge('cluster IP, TCP', node.address(0, 201), 80, 'all')
    if (options.testUdp !== false) await clients.judge('cluster IP, UDP', node.address(0, 202), 53, 'all', askUdp)
    if (node.features.sessionAffinity) await clients.judge('session affinity', node.address(0, 203), 80, 'one')
    else checks.add('skipped', 'session affinity', 'This version of HNS has none.')
    await clients.note('external IP', node.address(1, 204), 80)
    await clients.note('load-balancer IP', node.address(2, 204), 80)
    if (options.pods)
      checks.add(
        'skipped',
        'node port',
        'Not with --pods: clean could not tell its load balancer from that of a Service.',
      )
    else await clients.note('node port', node.nodeIp, nodePort)
    await core.set(service(201, { endpoints: all.slice(0, 1) })).sync()
    await clients.judge('after one of two endpoints is gone', node.address(0, 201), 80, [pods[0].name])
    await core.set(service(201, { endpoints: [] })).sync()
    await clients.note('without endpoints', node.address(0, 201), 80)
  } finally {
    await core.stop()
    for (const pod of pods) pod.stop()
    await removeOwn(node, checks)
  }
  return checks.report('traffic')
}

type Ask = (host: string, port: number) => Promise<string>

/** Asks who answers. `all`: each server at least once; `one`: the same each time; a list: only these. */
class Clients {
  readonly #node: TestedNode
  readonly #pods: NamedPods
  readonly #checks: Checks

  constructor(node: TestedNode, pods: NamedPods, checks: Checks) {
    this.#node = node
    this.#pods = pods
    this.#checks = checks
  }

  /** Without load balancers: if a server is not reached at its own address, nothing else can be judged. */
  async controls(): Promise<boolean> {
    const port = serverPorts.tcp
    const problems: string[] = []
    for (const { name, ip } of this.#pods) {
      const answer = await this.#firstAnswer(ip, port, askTcp, 20_000)
      if (answer !== name) problems.push(`${hostPort(ip, port)} should answer ${name}: ${answer}.`)
    }
    this.#checks.judge('the servers themselves', problems, 'Each server answers at its own address.')
    return problems.length === 0
  }

  async judge(name: string, host: string, port: number, wanted: 'all' | 'one' | string[], ask = askTcp): Promise<void> {
    const known = this.#pods.map((pod) => pod.name)
    const first = await this.#firstAnswer(host, port, ask)
    if (!known.includes(first)) {
      this.#checks.add('failed', name, `${hostPort(host, port)} does not answer: ${first}.`)
      return
    }
    const answers = await this.#answers(host, port, ask)
    const allowed = Array.isArray(wanted) ? wanted : known
    const strange = [...answers.keys()].filter((answer) => !allowed.includes(answer))
    const problems = strange.map((answer) => `${answers.get(answer)} of ${requests} requests: ${answer}.`)
    if (wanted === 'all' && answers.size < known.length && strange.length === 0)
      problems.push(`Only ${[...answers.keys()].join(', ')} answered in ${requests} requests.`)
    if (wanted === 'one' && answers.size > 1) problems.push(`More than one server answered: ${text(answers)}.`)
    const sentence = `${hostPort(host, port)} answered ${requests} of ${requests} requests: ${text(answers)}.`
    this.#checks.judge(name, problems, sentence, Object.fromEntries(answers))
  }

  async note(name: string, host: string, port: number): Promise<void> {
    const answers = await this.#answers(host, port, askTcp, 3)
    this.#checks.add('noted', name, `From this machine, ${hostPort(host, port)}: ${text(answers)}.`, [...answers])
  }

  /** HNS may take a while until packets take the new way. */
  async #firstAnswer(host: string, port: number, ask: Ask, limitMs = this.#node.options.settleMs ?? 20_000) {
    const known = this.#pods.map((pod) => pod.name)
    const end = performance.now() + limitMs
    for (;;) {
      const answer = await answerOf(ask, host, port)
      if (known.includes(answer) || performance.now() > end) return answer
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }

  async #answers(host: string, port: number, ask: Ask, count = requests): Promise<Map<string, number>> {
    const answers = new Map<string, number>()
    for (let at = 0; at < count; at++) {
      const answer = await answerOf(ask, host, port)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
    }
    return answers
  }
}

const answerOf = (ask: Ask, host: string, port: number): Promise<string> => ask(host, port).catch(messageOf)

/** `kpng-conformance-pod-1 12 times, kpng-conformance-pod-2 8 times` */
const text = (answers: ReadonlyMap<string, number>): string =>
  [...answers].map(([answer, times]) => `${answer} ${times} times`).join(', ')
