import { lstat, stat, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { KpngError, messageOf } from '@kpng/api'
import { type Address, formatAddress } from '@kpng/client/address'

/** Binds a server to an address and gives the address that it got. */
export async function bind(server: Server, address: Address): Promise<Address> {
  if (address.kind === 'unix') {
    await requireFolder(address.path)
    await removeStaleSocket(address.path)
  }
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(bindError(address, error))
    server.once('error', failed)
    listenOn(server, address, () => {
      server.off('error', failed)
      resolve()
    })
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') return address
  return { kind: 'tcp', host: bound.address, port: bound.port }
}

/** Takes the group's and nobody else's access: 0777 without 0117 is 0660. */
const socketUmask = 0o117
const backlog = 4096

function listenOn(server: Server, address: Address, listening: () => void): void {
  if (address.kind === 'tcp') {
    server.listen({ host: address.host, port: address.port, backlog }, listening)
    return
  }
  // The file is made inside `listen`, before it returns: with the umask no moment passes in which others may connect.
  const umask = process.umask(socketUmask)
  try {
    server.listen({ path: address.path, backlog }, listening)
  } finally {
    process.umask(umask)
  }
}

/** Asked beforehand: binding reports a missing folder as a missing permission. */
async function requireFolder(path: string): Promise<void> {
  const folder = dirname(path)
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => error.code)
  if (found !== 'ENOENT' && found !== 'ENOTDIR') return
  throw new KpngError(
    'unavailable',
    `Cannot listen on unix://${path}: the folder ${folder} does not exist. Make it first.`,
  )
}

/** A server that was killed leaves its socket file behind. It goes only when it is a socket that nobody listens on. */
async function removeStaleSocket(path: string): Promise<void> {
  let file: Awaited<ReturnType<typeof lstat>>
  try {
    file = await lstat(path)
  } catch {
    return // Nothing there, or nothing that may be seen: binding will say which.
  }
  if (!file.isSocket()) {
    throw new KpngError(
      'unavailable',
      `Cannot listen on unix://${path}: there is a file that is no socket. Remove it or choose another path.`,
    )
  }
  const found = await probe(path)
  if (found === 'stale') await unlink(path)
  if (found === 'listening') {
    throw new KpngError(
      'unavailable',
      `The socket unix://${path} is already in use by a running server. Stop it or choose another path.`,
    )
  }
}

function probe(path: string): Promise<'listening' | 'stale' | 'unknown'> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve('listening')
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') resolve('stale')
      // EAGAIN: somebody listens and is too busy to accept.
      else resolve(code === 'EAGAIN' ? 'listening' : 'unknown')
    })
  })
}

function bindError(address: Address, error: NodeJS.ErrnoException): KpngError {
  const where = formatAddress(address)
  return new KpngError('unavailable', `Cannot listen on ${where}: ${bindAdvice(address, error)}.`, { cause: error })
}

function bindAdvice(address: Address, error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'the address is already in use. Stop the program that has it, or choose another one with --listen'
    case 'EACCES':
      return address.kind === 'tcp'
        ? 'this user may not open that port. Choose a port above 1023, or give the program the right to (CAP_NET_BIND_SERVICE)'
        : `this user may not make a file in ${dirname(address.path)}. Choose another folder, or change its owner`
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address. Choose one of its own, 127.0.0.1 for itself only, or tcp://:port for all'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name has no address. Write an IP address'
    default:
      return messageOf(error)
  }
}
