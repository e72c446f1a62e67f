import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { addressLine } from '@kpng/linux/testing'
import type { Lab } from '../lab/lab.js'
import type { KubeconfigCopy } from './kubeconfig.js'

/**
 * Makes an API server reachable from node-a's namespace, which has no way out: an agent there listens at the API server's own
 * address and carries each connection through a Unix socket to this process, which connects to the API server.
 */
export async function relayApiServer(lab: Lab, { server, address }: KubeconfigCopy, folder: string): Promise<Server> {
  const path = join(folder, 'api.sock')
  const exit = createServer((near) => {
    const far = connect(server)
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    exit.once('error', reject)
    exit.listen(path, resolve)
  })
  // Without a listener, a connection that cannot be accepted would end the process.
  exit.on('error', () => {})
  if (!address.startsWith('127.') && address !== '::1') {
    await lab.ip('node-a', [addressLine(address, 'lo')])
  }
  await lab.agents['node-a'].call('relay', { protocol: 'TCP', ip: address, port: server.port }, path)
  return exit
}
