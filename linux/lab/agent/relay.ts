import { connect, createServer } from 'node:net'
import type { Place } from './protocol.js'

/**
 * Listens in this network namespace and carries each connection to a Unix socket: those are found through the file system, so
 * they lead out of the namespace.
 */
export function relay({ ip, port }: Place, path: string): Promise<void> {
  const server = createServer((near) => {
    const far = connect({ path })
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: ip, port }, resolve)
  })
}
