import { chmod, lstat, mkdir, stat, unlink } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { KpngError, type Log, messageOf } from '@kpng/api'
import { runtimeFolder, sharedFolder } from '@kpng/linux'

/**
 * Where the agent API of a kpng on this machine is. systemd names the folder of a unit with `RuntimeDirectory=` in the environment.
 * @param serviceProxyName empty for the cluster's default proxy
 */
export function agentSocketPath(serviceProxyName = '', env = process.env, platform = process.platform): string {
  return socketPath(serviceProxyName === '' ? 'agent' : `agent-${serviceProxyName}`, env, platform)
}

/** Where the agent API of a core on this machine is. */
export const coreSocketPath = (): string => socketPath('core', process.env, process.platform)

function socketPath(name: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === 'win32') return `\\\\.\\pipe\\kpng-${name}`
  return join(runtimeFolder(env), `${name}.sock`)
}

/** Refuses a folder that another user may have made, to be asked here or to be served to. */
async function checkFolder(path: string): Promise<void> {
  const user = process.geteuid?.() ?? 0
  const folder = sharedFolder(user)
  if (dirname(path) !== folder) return
  const found = await lstat(folder).catch(() => undefined)
  if (!found) return
  if (found.isDirectory() && found.uid === user && (found.mode & 0o077) === 0) return
  throw new KpngError(
    'unavailable',
    `${folder} is not a folder that only you may use, so it may belong to somebody else. Remove it, set XDG_RUNTIME_DIR, or give --agent-socket.`,
  )
}

const maxConnections = 64

export interface AgentSocket {
  readonly path: string
  close(): Promise<void>
}

/** Serves the agent API on a unix socket that its owner and group may use. Rejects if another kpng has it. */
export async function serveOnSocket(
  path: string,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<AgentSocket> {
  const isPipe = path.startsWith('\\\\.\\pipe\\')
  if (!isPipe) {
    const isShared = dirname(path) === sharedFolder(process.geteuid?.() ?? 0)
    await mkdir(dirname(path), { recursive: true, mode: isShared ? 0o700 : 0o750 })
    await checkFolder(path)
    await removeLeftover(path)
  }
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000, maxHeaderSize: 16_384 }, handler)
  makeRoom(server)
  // A socket that cannot be accepted (no files left) is the client's loss, not the agent's end.
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      server.on('error', () => {})
      resolve()
    })
  })
  if (!isPipe) await chmod(path, 0o660)
  return { path, close: () => closeServer(server) }
}

/** Whoever may use the socket may keep connections open. The oldest one gives way, so that a question is always answered. */
function makeRoom(server: Server): void {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    const [oldest] = open
    if (oldest && open.size >= maxConnections) {
      open.delete(oldest)
      oldest.destroy()
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
}

/** As `serveOnSocket`. Without the socket kpng works, and nobody can ask it: that is logged. */
export async function openSocket(
  path: string | undefined,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  log: Log,
): Promise<AgentSocket | undefined> {
  if (path === undefined) return undefined
  try {
    const socket = await serveOnSocket(path, handler)
    log.detail(1, 'Serving the agent API', { path })
    return socket
  } catch (error) {
    log.warn('The agent API is not served: kpng status, get and explain cannot ask this kpng', {
      path,
      error: messageOf(error),
    })
    return undefined
  }
}

/** A process that was killed leaves its socket behind. */
async function removeLeftover(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return
  if (!found.isSocket())
    throw new KpngError('unavailable', `${path} is not a socket. Remove it, or choose another path.`)
  if (await answers(path)) {
    throw new KpngError('unavailable', `Another kpng serves its agent API on ${path}. Choose another path, or end it.`)
  }
  await unlink(path)
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path)
    const done = (is: boolean) => {
      socket.destroy()
      resolve(is)
    }
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
  })

const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

/** Asks the agent on a socket. The error says how to start one. */
export async function askAgent<Answer>(socketPath: string, path: string, limitMs = 30_000): Promise<Answer> {
  await checkFolder(socketPath)
  return await new Promise((resolve, reject) => {
    // A connection of its own: the agent may have closed one that was left open, if this process was stopped for a while.
    const options = { socketPath, path, headers: { Host: 'localhost' }, timeout: limitMs, agent: false }
    const asked = request(options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', (error) => reject(cannotAsk(socketPath, error)))
      response.on('end', () => {
        try {
          const answer = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Answer & { error?: string }
          if (response.statusCode === 200) resolve(answer)
          else {
            // Only 400 says that the question is wrong. A core that has not read everything yet is asked again later.
            const code = response.statusCode === 400 ? 'usage' : 'unavailable'
            reject(new KpngError(code, answer.error ?? `The agent answered ${response.statusCode}.`))
          }
        } catch (error) {
          reject(cannotAsk(socketPath, error))
        }
      })
    })
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${limitMs / 1000} s`)))
    asked.on('error', (error) => reject(cannotAsk(socketPath, error)))
    asked.end()
  })
}

function cannotAsk(path: string, error: unknown): KpngError {
  const code = (error as NodeJS.ErrnoException).code
  const next =
    code === 'ENOENT' || code === 'ECONNREFUSED'
      ? 'No kpng runs on this machine, or it runs without --agent-socket. Start one (kpng kube to-local to-nft), or name its socket with --agent-socket.'
      : code === 'EACCES'
        ? 'You may not use it. Ask as root, or as a member of its group.'
        : `${messageOf(error)}.`
  return new KpngError('unavailable', `The agent API on ${path} cannot be asked. ${next}`, { cause: error })
}
