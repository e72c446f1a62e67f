import { messageOf } from '@kpng/api'
import { keyOf } from '../balancers.js'
import { ipOf, sourceVipName } from '../remote-endpoints.js'
import { type ConformanceOptions, TestedNode } from './node.js'
import { readAll } from './own.js'
import { Checks, counted, type Report } from './report.js'

/** Removes what `sync` and `traffic` made, also in an earlier run that was interrupted. */
export async function clean(options: ConformanceOptions): Promise<Report> {
  const checks = new Checks()
  const node = await TestedNode.open(options)
  await removeOwn(node, checks)
  const { hcn } = node
  const others = await readAll(await hcn.loadBalancerIds(), (id) => hcn.loadBalancer(id))
  for (const { ID } of others.filter((balancer) => keyOf(balancer) === undefined)) {
    const sentence = `${ID} has no port mappings. A creation that failed leaves such a one; nobody can tell whose it was.`
    checks.add('noted', 'load balancer', `${sentence} If no proxy runs: hnsdiag delete loadbalancers ${ID}`)
  }
  return checks.report('clean')
}

/** Load balancers first: none may point to an endpoint that is gone. */
export async function removeOwn({ hcn, own, network }: TestedNode, checks: Checks): Promise<void> {
  const problems: string[] = []
  const attempt = (what: string, remove: Promise<void>) =>
    remove.catch((error) => {
      problems.push(`${what} could not be deleted: ${messageOf(error)}.`)
    })
  const balancers = await own.balancers(hcn)
  for (const balancer of balancers)
    await attempt(`The load balancer ${keyOf(balancer) ?? balancer.ID}`, hcn.deleteLoadBalancer(balancer.ID))
  const endpoints = await own.endpoints(hcn, network.ID)
  const sourceVip = await hcn.endpointNamed(sourceVipName)
  const left = await readAll(await hcn.loadBalancerIds(), (id) => hcn.loadBalancer(id))
  if (sourceVip && !left.some(({ SourceVIP }) => SourceVIP === ipOf(sourceVip))) endpoints.push(sourceVip)
  for (const endpoint of endpoints) {
    const name = endpoint.Name || ipOf(endpoint) || endpoint.ID
    await attempt(`The endpoint ${name}`, hcn.deleteEndpoint(endpoint.ID))
  }
  const removed = `Removed ${counted(balancers.length, 'load balancer')} and ${counted(endpoints.length, 'endpoint')}.`
  checks.judge('clean', problems, removed, { balancers, endpoints })
}
