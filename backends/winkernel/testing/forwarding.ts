import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import { withCalls } from '../conformance/own.js'
import { distribution, type Hcn, type HcnLoadBalancer, type PortMapping } from '../hcn.js'
import { ipOf } from '../remote-endpoints.js'

// Load balancers that pass traffic, in user space on loopback: what HNS makes the kernel of Windows do.

/** Where a connection goes. @param count how many came before */
export type Choose = (ips: readonly string[], mapping: PortMapping, count: number) => string

const evenly: Choose = (ips, { DistributionType }, count) =>
  ips[DistributionType === distribution.sourceIp ? 0 : count % ips.length] as string

export interface Forwarding {
  readonly hcn: Hcn
  close(): void
}

/** @param nodeIp where node ports are served */
export function forwarding(hcn: Hcn, nodeIp: string, choose: Choose = evenly): Forwarding {
  const running = new Map<string, () => void>()
  const stop = (id: string) => {
    running.get(id)?.()
    running.delete(id)
  }
  const serve = async (balancer: HcnLoadBalancer): Promise<HcnLoadBalancer> => {
    stop(balancer.ID)
    const ips: string[] = []
    for (const id of balancer.HostComputeEndpoints ?? []) ips.push(ipOf((await hcn.endpoint(id)) ?? {}) ?? '')
    const [mapping] = balancer.PortMappings ?? []
    const host = balancer.FrontendVIPs?.[0] ?? nodeIp
    if (mapping) {
      let count = 0
      const next = () => choose(ips, mapping, count++)
      running.set(balancer.ID, mapping.Protocol === 17 ? udp(host, mapping, next) : tcp(host, mapping, next))
    }
    return balancer
  }
  const changed: Partial<Hcn> = {
    createLoadBalancer: async (settings) => serve(await hcn.createLoadBalancer(settings)),
    modifyLoadBalancer: async (id, settings) => serve(await hcn.modifyLoadBalancer(id, settings)),
    deleteLoadBalancer: async (id) => {
      stop(id)
      await hcn.deleteLoadBalancer(id)
    },
  }
  return { hcn: withCalls(hcn, changed), close: () => [...running.keys()].forEach(stop) }
}

function tcp(host: string, { ExternalPort, InternalPort }: PortMapping, next: () => string): () => void {
  const server = createServer((client) => {
    const upstream = connect(InternalPort, next())
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      from.on('error', () => to.destroy()).pipe(to)
  })
  server.on('error', () => {}).listen(ExternalPort, host)
  return () => server.close()
}

function udp(host: string, { ExternalPort, InternalPort }: PortMapping, next: () => string): () => void {
  const server: UdpSocket = createSocket('udp4')
  server.on('error', () => {})
  server.on('message', (message, from) => {
    const upstream = createSocket('udp4')
    upstream.on('error', () => upstream.close())
    upstream.on('message', (answer) => {
      server.send(answer, from.port, from.address)
      upstream.close()
    })
    upstream.send(message, InternalPort, next())
  })
  server.bind(ExternalPort, host)
  return () => server.close()
}
