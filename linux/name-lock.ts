import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { KpngError, type Log, messageOf, silentLog } from '@kpng/api'
import { type Libc, loadLibc } from './libc.js'
import { hostOrder } from './netlink/messages.js'
import { runtimeFolder, whyUnsafe } from './runtime-folder.js'

// A name that only one kpng of a network namespace can hold. The kernel frees it when the process ends, even after SIGKILL.
//
// It is a lock (flock) on a file in a folder that only root, or the user that root gave it to, can write: nobody else can open the
// file, so nobody else can hold the lock. The name is also taken as an abstract unix socket, as kpng 0.1 did and nothing else: so each
// of the two sees the other during an upgrade. Anybody can take an abstract name; it counts only if its holder is one of those who may
// write the folder.

/** A holder answers at once. One that is stopped (SIGSTOP) must not delay the next start. */
const answerMs = 1000

/** Nobody needs more to say who it is. */
const holderBytesMax = 200

/** The length of an address of a unix socket. Some versions of Node pad a name to it, others do not, so it is padded here. */
const nameBytes = 108

const LOCK_EX_NB = 2 | 4
const SOL_SOCKET = 1
const SO_PEERCRED = 17

export interface NameLock {
  release(): Promise<void>
}

export interface NameLockOptions {
  /** Default: `runtimeFolder()`. */
  readonly folder?: string
  /** Gets a warning if another user has taken the name of the socket. Default: logs nothing. */
  readonly log?: Log
}

/**
 * Takes a name, or rejects with a sentence that says who holds it.
 * @param holder what a second process is told, such as `kpng (pid 12) on node a`
 */
export async function lockName(
  name: string,
  holder: string,
  { folder = runtimeFolder(), log = silentLog }: NameLockOptions = {},
): Promise<NameLock> {
  const libc = await loadLibc()
  const file = lockFile(libc, folder, name)
  if (file.heldBy !== undefined) throw inUse(name, file.heldBy)
  try {
    writeSync(file.fd, holder)
    const server = await takeAbstractName(libc, name, holder, folder, log)
    return {
      release: async () => {
        if (server) await new Promise<void>((resolve) => void server.close(() => resolve()))
        file.release()
      },
    }
  } catch (error) {
    file.release()
    throw error
  }
}

const inUse = (name: string, holder: string): KpngError =>
  new KpngError(
    'unavailable',
    `"${name}" is in use on this node by ${printable(holder) || 'another process'}. Stop it first, or give this one another name.`,
  )

/** What another process says ends up in a terminal. */
const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?').slice(0, holderBytesMax)

/** Rules belong to a network namespace, and so do their locks. */
const fileName = (name: string): string =>
  `lock-${statSync('/proc/thread-self/ns/net').ino}-${name.replace(/[^A-Za-z0-9._-]/g, '-')}`

interface LockedFile {
  readonly fd: number
  /** Who has it, if it is not ours. */
  readonly heldBy?: string
  release(): void
}

function lockFile(libc: Libc, folder: string, name: string): LockedFile {
  const path = join(folder, fileName(name))
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    const unsafe = whyUnsafe(folder)
    if (unsafe !== undefined) throw new Error(unsafe)
    for (;;) {
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
      const locked = tryLock(libc, fd, folder, path)
      if (locked) return locked
    }
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `Only one kpng may write "${name}", and the lock for that, ${path}, cannot be used: ${messageOf(error)}. ${folder} must be a folder of root (mode 0755) or of the user of kpng; in a container, mount the node's own ${folder} there.`,
      { cause: error },
    )
  }
}

/** Undefined if the file was deleted by its last holder at the same moment. */
function tryLock(libc: Libc, fd: number, folder: string, path: string): LockedFile | undefined {
  try {
    const { uid } = fstatSync(fd)
    if (!trusted(folder).has(uid)) throw new Error(`it belongs to another user (${uid})`)
    if (libc.flock(fd, LOCK_EX_NB) !== 0) {
      const said = Buffer.alloc(holderBytesMax)
      const heldBy = said.toString('utf8', 0, readSync(fd, said, 0, said.length, 0))
      closeSync(fd)
      return { fd: -1, heldBy, release: () => {} }
    }
    if (fstatSync(fd).nlink === 0) {
      closeSync(fd)
      return undefined
    }
    fchmodSync(fd, 0o600)
    ftruncateSync(fd)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  const release = () => {
    try {
      unlinkSync(path)
    } catch {
      // It is gone, or may not be removed. It is locked no more.
    }
    closeSync(fd)
  }
  return { fd, release }
}

/** Whom a lock is believed: root, this user, and the user to whom root gave the folder. */
function trusted(folder: string): ReadonlySet<number | undefined> {
  return new Set([0, process.geteuid?.(), statSync(folder).uid])
}

/** Undefined if somebody has the name who is not believed. */
async function takeAbstractName(
  libc: Libc,
  name: string,
  holder: string,
  folder: string,
  log: Log,
): Promise<Server | undefined> {
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
    const { user, said } = await askHolder(libc, path)
    if (user !== undefined && trusted(folder).has(user)) throw inUse(name, said)
    log.warn('A process of another user has the name of kpng; it is not believed', {
      name,
      user,
      said: printable(said),
    })
    return undefined
  }
  // Without a listener, a connection that cannot be accepted would end the process.
  server.on('error', () => {})
  server.unref()
  return server
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

/** What a holder says, and the user who listened there; undefined if nobody listens. */
function askHolder(libc: Libc, path: string): Promise<{ user: number | undefined; said: string }> {
  return new Promise((resolve) => {
    let said = Buffer.alloc(0)
    let user: number | undefined
    const socket = connect(path)
    const done = () => {
      socket.destroy()
      resolve({ user, said: said.toString('utf8', 0, holderBytesMax) })
    }
    socket.setTimeout(answerMs, done)
    socket.on('connect', () => {
      user = listeningUser(libc, socket)
    })
    socket.on('data', (chunk) => {
      said = Buffer.concat([said, chunk.subarray(0, holderBytesMax)])
      if (said.length >= holderBytesMax) done()
    })
    socket.on('error', done)
    socket.on('close', done)
  })
}

/** struct ucred: pid, uid, gid. Those of a listener are those of the process that called listen. */
function listeningUser(libc: Libc, socket: Socket): number | undefined {
  const fd = (socket as unknown as { _handle?: { fd: number } | null })._handle?.fd
  if (fd === undefined) return undefined
  const credentials = Buffer.alloc(12)
  const length = Buffer.alloc(4)
  hostOrder.writeU32(length, credentials.length, 0)
  if (libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length) !== 0) return undefined
  return hostOrder.readU32(credentials, 4)
}
