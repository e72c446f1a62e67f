import type { Socket } from 'node:net'

export interface Dialing {
  readonly connected: (socket: Socket) => void
  readonly failed: (error: NodeJS.ErrnoException) => void
  /** The socket is closed, however it went. */
  readonly closed: () => void
}

/** Waits for a socket to be connected, but not for ever. Either `connected` or `failed` is called, unless what is returned was called before. */
export function dial(socket: Socket, timeoutMs: number, dialing: Dialing): () => void {
  const { connected, failed, closed } = dialing
  let settled = false
  const settle = (): boolean => {
    if (settled) return false
    settled = true
    clearTimeout(timer)
    return true
  }
  const fail = (error: NodeJS.ErrnoException) => {
    if (!settle()) return
    socket.destroy()
    failed(error)
  }
  const timer = setTimeout(() => {
    fail(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
  }, timeoutMs)
  // Stays for the socket's life: later errors end in 'close', which is what the byte mover acts on.
  socket.on('error', fail)
  socket.once('close', closed)
  socket.once('connect', () => {
    if (settle()) connected(socket)
  })
  return () => {
    if (settle()) socket.destroy()
  }
}
