import type { ServerHttp2Session } from 'node:http2'

export interface Keepalive {
  /** Between the answer to one PING and the next PING. Default 30,000. gRPC's `grpc.keepalive_time_ms`. */
  readonly intervalMs: number
  /** How long a client may send nothing at all while a PING waits for its answer. Default 10,000. `grpc.keepalive_timeout_ms`. */
  readonly ackTimeoutMs: number
}

export const defaultKeepalive: Keepalive = { intervalMs: 30_000, ackTimeoutMs: 10_000 }

/**
 * Pings a client for as long as its session lives and calls `dead`, once, when it does not answer. Any byte counts as an answer: on
 * a slow line the PING may stand behind a long change set, which the client is busy taking.
 */
export function keepAlive(
  session: ServerHttp2Session,
  { intervalMs, ackTimeoutMs }: Keepalive,
  dead: () => void,
): void {
  let timer: NodeJS.Timeout | undefined
  const after = (ms: number, then: () => void) => {
    clearTimeout(timer)
    timer = setTimeout(then, ms).unref()
  }
  const wait = (bytesSeen: number) => {
    after(ackTimeoutMs, () => {
      const { bytesRead } = session.socket
      if (bytesRead === bytesSeen) dead()
      else wait(bytesRead)
    })
  }
  const ping = () => {
    wait(session.socket.bytesRead)
    session.ping((error) => {
      if (!error && !session.destroyed) after(intervalMs, ping)
    })
  }
  session.once('close', () => clearTimeout(timer))
  after(intervalMs, ping)
}
