import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { addressLine } from '@kpng/linux/testing'
import type { Lab } from '../lab/lab.js'
import type { KubeconfigCopy } from './kubeconfig.js'

/** Takes an API server away from the proxies, and gives it back. */
export interface ApiServerSwitch {
  away(): void
  back(): void
}

export interface ApiRelay extends ApiServerSwitch {
  close(): void
}

/**
 * Makes an API server reachable from a node's namespace, which has no way out: an agent there listens at the API server's own
 * address and carries each connection through a Unix socket to this process, which connects to the API server.
 */
export async function relayApiServer(
  lab: Lab,
  { server, address }: KubeconfigCopy,
  folder: string,
  nodes: readonly ('node-a' | 'node-b')[] = ['node-a'],
): Promise<ApiRelay> {
  const path = join(folder, 'api.sock')
  const open = new Set<Socket>()
  let isAway = false
  const exit = createServer((near) => {
    if (isAway) return void near.destroy()
    const far = connect(server)
    open.add(near)
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
    near.on('close', () => {
      open.delete(near)
      far.destroy()
    })
    far.on('close', () => near.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    exit.once('error', reject)
    exit.listen(path, resolve)
  })
  // Without a listener, a connection that cannot be accepted would end the process.
  exit.on('error', () => {})
  for (const node of nodes) {
    if (!address.startsWith('127.') && address !== '::1') await lab.ip(node, [addressLine(address, 'lo')])
    await lab.agents[node].call('relay', { protocol: 'TCP', ip: address, port: server.port }, path)
  }
  return {
    away() {
      isAway = true
      for (const near of open) near.destroy()
    },
    back() {
      isAway = false
    },
    close: () => void exit.close(),
  }
}
