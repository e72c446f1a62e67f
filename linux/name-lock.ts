import { connect, createServer, type Server } from 'node:net'
import { KpngError } from '@kpng/api'

/** The length of an address of a unix socket. Some versions of Node pad a name to it, others do not, so it is padded here. */
const nameBytes = 108

/** A holder answers at once. One that is stopped (SIGSTOP) must not delay the next start. */
const answerMs = 1000

/** A name that only one process of a network namespace can hold. */
export interface NameLock {
  release(): Promise<void>
}

/**
 * Takes a name, or rejects with a sentence that says who holds it. The lock is an abstract unix socket: it belongs to the network
 * namespace, as rules do, and the kernel frees it when the process ends, even after SIGKILL.
 * @param holder what a second process is told, such as `kpng (pid 12) on node a`
 */
export async function lockName(name: string, holder: string): Promise<NameLock> {
  const path = `\0kpng/${name}`.padEnd(nameBytes, '\0')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    // A process that asks may keep its end open; this end must be closed.
    socket.end(holder, () => socket.destroy())
  })
  try {
    await listen(server, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    const other = (await askHolder(path)) || 'another process'
    throw new KpngError(
      'unavailable',
      `"${name}" is in use on this node by ${other}. Stop it first, or give this one another name.`,
    )
  }
  // Without a listener, a connection that cannot be accepted would end the process.
  server.on('error', () => {})
  server.unref()
  return { release: () => new Promise((resolve) => void server.close(() => resolve())) }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function askHolder(path: string): Promise<string> {
  return new Promise((resolve) => {
    let said = ''
    const socket = connect(path)
    const done = () => {
      socket.destroy()
      resolve(said.slice(0, 200))
    }
    socket.setTimeout(answerMs, done)
    socket.on('data', (chunk) => {
      said += chunk
    })
    socket.on('error', done)
    socket.on('close', done)
  })
}
