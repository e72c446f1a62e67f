import { keyOf } from '../balancers.js'
import { featuresOf, type Hcn, type HcnEndpoint, type HcnNetwork, isOverlay, isRemote } from '../hcn.js'
import { settingsOf } from '../options.js'
import { type ConformanceOptions, networkNames } from './node.js'
import { readAll } from './own.js'
import { Checks, counted, type Report } from './report.js'

/** Reads what HNS is and has, and what `to-winkernel` would use of it. Changes nothing. */
export async function probe(options: ConformanceOptions): Promise<Report> {
  const checks = new Checks()
  const { networkName, sourceVip, openHcn, hostMacOf, ownAddresses } = settingsOf(options)
  const hcn = await openHcn()
  await version(hcn, checks)
  const networks = await hcn.networks()
  for (const network of networks) checks.add('noted', `network ${network.Name}`, describe(network), network)
  const network = networks.find(({ Name }) => Name === networkName)
  if (networkName === '')
    checks.add('failed', 'what is used', `No network was named. Give --network-name: ${await networkNames(hcn)}.`)
  else if (!network)
    checks.add('failed', 'what is used', `There is no HNS network ${networkName}: ${await networkNames(hcn)}.`)
  else {
    checks.add('passed', 'what is used', `The network ${networkName}, ${describe(network)}`)
    if (isOverlay(network)) {
      const macs = ownAddresses().map((ip) => ({ ip, mac: hostMacOf(ip) }))
      const problems = sourceVip === '' ? ['An overlay network needs --source-vip, and none was given.'] : []
      checks.judge('overlay', problems, `Pods see the source VIP ${sourceVip}.`, { addressesOfTheMachine: macs })
    }
    await objects(hcn, network, checks)
  }
  return checks.report('probe')
}

async function version(hcn: Hcn, checks: Checks): Promise<void> {
  const version = await hcn.version()
  const features = featuresOf(version)
  const has = Object.entries(features).map(([name, isThere]) => `${isThere ? '' : 'no '}${words(name)}`)
  const text = `HNS ${version.Major}.${version.Minor}`
  const problems = features.schema2 ? [] : [`${text} is too old; 9.2 is needed. Update Windows.`]
  checks.judge('version', problems, `${text}: ${has.join(', ')}.`, { version, features })
}

/** `sessionAffinity` → `session affinity` */
const words = (name: string): string => name.replace(/[A-Z0-9]/g, (letter) => ` ${letter.toLowerCase()}`)

function describe({ Type = 'without a type', Ipams = [], Policies = [] }: HcnNetwork): string {
  const subnets = Ipams.flatMap(({ Subnets = [] }) => Subnets).map(({ IpAddressPrefix }) => IpAddressPrefix)
  const routes = Policies.filter((policy) => policy.Type === 'RemoteSubnetRoute').length
  const remote = routes > 0 ? `, ${counted(routes, 'remote subnet')}` : ''
  return `${Type}, ${subnets.length > 0 ? subnets.join(', ') : 'no subnet'}${remote}.`
}

/** What is there before kpng starts. `to-winkernel` adopts what is right of it, and deletes the other load balancers. */
async function objects(hcn: Hcn, network: HcnNetwork, checks: Checks): Promise<void> {
  const endpoints = await readAll(await hcn.endpointIds(network.ID), (id) => hcn.endpoint(id))
  const remote = endpoints.filter(isRemote)
  const sentence = `${counted(endpoints.length - remote.length, 'endpoint')} on this node, ${counted(remote.length, 'remote endpoint')}.`
  checks.add('noted', 'endpoints', sentence, endpoints)
  const balancers = await readAll(await hcn.loadBalancerIds(), (id) => hcn.loadBalancer(id))
  const keys = balancers.map((balancer) => keyOf(balancer))
  const without = keys.filter((key) => key === undefined).length
  const twice = new Set(keys.filter((key, at) => key !== undefined && keys.indexOf(key) !== at)).size
  const known = new Map<string, HcnEndpoint | undefined>()
  for (const id of new Set(balancers.flatMap(({ HostComputeEndpoints = [] }) => HostComputeEndpoints)))
    known.set(id, await hcn.endpoint(id))
  const dangling = [...known.values()].filter((endpoint) => endpoint === undefined).length
  const oddities = [
    ...(without > 0 ? [`${without} without port mappings, as a failed creation leaves them`] : []),
    ...(twice > 0 ? [`${counted(twice, 'frontend')} more than once`] : []),
    ...(dangling > 0 ? [`${counted(dangling, 'endpoint')} that no longer exist`] : []),
  ]
  const all = `${counted(balancers.length, 'load balancer')}${oddities.length > 0 ? `; ${oddities.join('; ')}` : ''}.`
  checks.add('noted', 'load balancers', `${all} Stop kube-proxy before kpng starts.`, balancers)
}
