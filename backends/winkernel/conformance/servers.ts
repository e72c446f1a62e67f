import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { hostPort, KpngError, messageOf } from '@kpng/api'
import { askTcp, question } from './clients.js'
import type { TestedNode, TestPod } from './node.js'

/** A server that answers with its name. */
export interface NamedPod {
  readonly name: string
  readonly ip: string
  stop(): void
}
export type NamedPods = readonly [NamedPod, NamedPod]

/** Those of `agnhost netexec`. */
export const serverPorts = { tcp: 8080, udp: 8081 } as const
const { tcp, udp } = serverPorts

/** Those of `--pods`; else two small ones in this process, whose endpoints become interfaces of this machine. */
export async function startServers(node: TestedNode): Promise<NamedPods> {
  const { pods } = node.options
  if (pods) {
    const [a, b] = pods
    if (a === undefined || b === undefined) {
      throw new KpngError('usage', '--pods needs the IPs of two pods on this node, with a comma.')
    }
    return [await podAt(a), await podAt(b)]
  }
  const [one, other] = await node.makePods()
  const first = await serverOf(node, one)
  try {
    return [first, await serverOf(node, other)]
  } catch (error) {
    first.stop()
    throw error
  }
}

async function podAt(ip: string): Promise<NamedPod> {
  const name = await askTcp(ip, tcp).catch((error) => {
    const asked = `http://${hostPort(ip, tcp)}/${question}`
    throw new KpngError(
      'unavailable',
      `The pod does not answer at ${asked}: ${messageOf(error)}. Run agnhost netexec in it.`,
    )
  })
  return { name, ip, stop: () => {} }
}

async function serverOf(node: TestedNode, { name, ip, endpoint }: TestPod): Promise<NamedPod> {
  await node.hcn.attachToHost(endpoint.ID)
  const web = createServer((_request, response) => response.setHeader('Connection', 'close').end(name))
  const datagrams = createSocket('udp4')
  datagrams.on('message', (_message, from) => datagrams.send(name, from.port, from.address))
  const stop = () => {
    web.close()
    datagrams.close()
  }
  try {
    await whenUsable(node, async () => {
      web.listen(tcp, ip)
      await once(web, 'listening')
    })
    if (node.options.testUdp !== false) {
      datagrams.bind(udp, ip)
      await once(datagrams, 'listening')
    }
  } catch (error) {
    stop()
    const asked = `${hostPort(ip, tcp)}, the address of the endpoint ${name}`
    throw new KpngError(
      'unavailable',
      `No server can listen on ${asked}: ${messageOf(error)}. Give two pods with --pods instead.`,
    )
  }
  return { name, ip, stop }
}

/** Windows takes a while until the address of a new interface can be used. */
async function whenUsable({ options }: TestedNode, listen: () => Promise<void>): Promise<void> {
  const end = performance.now() + (options.settleMs ?? 20_000)
  for (;;) {
    try {
      return await listen()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRNOTAVAIL' || performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}
