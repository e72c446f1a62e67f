import { servicePath } from '@kpng/api'
import { endpoint, type TestService } from '@kpng/client/testing'
import type { WinkernelOptions } from '../options.js'
import { askGuesses } from './guesses.js'
import { type Comparison, compare } from './held.js'
import { type Kind, type KindPods, kindsOf } from './kinds.js'
import { type ConformanceOptions, TestedNode, type TestPod } from './node.js'
import { Checks, counted, type Report } from './report.js'

/** The node ports of the kinds begin here. If a Service of the node has one of them, HNS refuses ours. */
const firstNodePort = 32_700

/**
 * Serves a Service of each kind, reads back what HNS holds and compares it with what it should hold. Then: changed endpoints, a sync
 * without a change, and a load balancer that was deleted behind the back of kpng. The last state stays, to be looked at; `clean` removes it.
 */
export async function sync(options: ConformanceOptions): Promise<Report> {
  const checks = new Checks()
  const node = await TestedNode.open(options)
  const pods = await node.makePods()
  checks.add('passed', 'pods', `The pods have the addresses ${pods.map(({ ip }) => ip).join(' and ')}.`, pods)
  await askGuesses(node, pods, checks)
  const groups = groupsOf(node, pods, checks)
  // Those without options of their own come last and stay.
  for (const [, kinds] of [...groups].sort(([a], [b]) => Number(a === none) - Number(b === none)))
    await syncGroup(node, kinds, checks)
  return checks.report('sync')
}

type NamedKind = Kind & { readonly name: string }

const none = '{}'

/** The kinds that this node can be asked for, by the options that the backend needs for them. */
function groupsOf(node: TestedNode, pods: readonly [TestPod, TestPod], checks: Checks): Map<string, NamedKind[]> {
  const [a, b] = pods
  const ipV6 = node.features.dualStack && !node.isOverlay ? a.ipV6 : undefined
  const shared: KindPods = {
    local: [a.ip, b.ip],
    remote: [node.address(3, 1), node.address(3, 2)],
    remoteV6: node.addressV6(0x301),
    ...{ otherNode: node.address(3, 3), outside: node.address(3, 4), rootEndpointName: a.name },
    ...(ipV6 !== undefined && { localV6: ipV6 }),
  }
  const addresses = (at: number) => ({
    ...{ name: `kind-${at}`, clusterIp: node.address(0, at + 1), clusterIpV6: node.addressV6(at + 1) },
    ...{ externalIp: node.address(1, at + 1), loadBalancerIp: node.address(2, at + 1) },
    ...{ nodePort: firstNodePort + at, healthCheckNodePort: firstNodePort + 50 + at },
  })
  const groups = new Map<string, NamedKind[]>()
  for (const [at, name] of Object.keys(kindsOf(addresses(0), shared)).entries()) {
    const kind = kindsOf(addresses(at), shared)[name] as Kind
    const why = whyNot(node, name, kind, ipV6)
    if (why !== undefined) checks.add('skipped', name, why)
    else {
      const group = JSON.stringify(kind.options ?? {})
      groups.set(group, [...(groups.get(group) ?? []), { ...kind, name }])
    }
  }
  return groups
}

function whyNot(
  { features }: TestedNode,
  name: string,
  { options }: Kind,
  ipV6: string | undefined,
): string | undefined {
  if (options?.enableDsr && !features.directServerReturn) return 'This version of HNS has no direct server return.'
  if (name === 'dual stack' && ipV6 === undefined) return 'The network has no IPv6, or HNS cannot serve it there.'
  return undefined
}

async function syncGroup(node: TestedNode, kinds: readonly NamedKind[], checks: Checks): Promise<void> {
  const options: WinkernelOptions = kinds[0]?.options ?? {}
  const services = kinds.map(({ service }) => service)
  const { backend, core } = node.start(services, options)
  const settings = node.settings(options)
  const compared = (current: readonly TestService[]) =>
    compare(node, {
      ...{ frontends: backend.frontends, settings, services: current },
      failures: backend.observations?.failures?.() ?? new Map(),
    })
  try {
    await core.sync()
    judge(kinds, await compared(services), checks)
    if (kinds[0]?.options) return
    const fewer = services.map((service) => ({ ...service, endpoints: (service.endpoints ?? []).slice(0, 1) }))
    await core.set(...fewer).sync()
    judgeAll('changed endpoints', await compared(fewer), checks)
    await core.set(...services).sync()
    judgeAll('the endpoints of before', await compared(services), checks)
    await repair(node, checks, async () => {
      await core.set({ name: 'touch', endpoints: [endpoint(node.address(3, 1))] }).sync()
      return await compared(services)
    })
  } finally {
    await core.stop()
  }
}

function judge(kinds: readonly NamedKind[], { problems, held }: Comparison, checks: Checks): void {
  for (const { name, service } of kinds) {
    const path = servicePath('default', service.name)
    const documents = held.get(path) ?? []
    const sentence =
      documents.length === 0 ? 'HNS holds nothing for it, as it should.' : `HNS holds ${as(documents.length)}.`
    checks.judge(name, problems.get(path) ?? [], sentence, documents)
  }
  const others = problems.get('other')
  if (others) checks.add('failed', 'other load balancers', others.join(' '))
}

const as = (count: number): string => `${counted(count, 'load balancer')} as expected`

function judgeAll(name: string, { problems, held }: Comparison, checks: Checks): void {
  const documents = [...held.values()].flat()
  checks.judge(name, [...problems.values()].flat(), `HNS holds ${as(documents.length)}.`)
}

async function repair(node: TestedNode, checks: Checks, sync: () => Promise<Comparison>): Promise<void> {
  const { own, hcn } = node
  const [balancer] = await own.balancers(hcn)
  if (!balancer) return
  await hcn.deleteLoadBalancer(balancer.ID)
  const before = new Set(await hcn.loadBalancerIds())
  const comparison = await sync()
  judgeAll('a load balancer that was deleted', comparison, checks)
  const made = (await hcn.loadBalancerIds()).filter((id) => !before.has(id)).length
  const problems = made === 1 ? [] : [`${counted(made, 'load balancer')} were made in the place of one.`]
  checks.judge('nothing else is written', problems, 'One load balancer was made again; the others kept their IDs.')
}
