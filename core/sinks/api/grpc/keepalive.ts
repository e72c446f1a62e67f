import type { ServerHttp2Session } from 'node:http2'

export interface Keepalive {
  /** Between the answer to one PING and the next PING. Default 30,000. gRPC's `grpc.keepalive_time_ms`. */
  readonly intervalMs: number
  /** How long a client may send nothing at all while a PING waits for its answer. Default 10,000. `grpc.keepalive_timeout_ms`. */
  readonly ackTimeoutMs: number
}

export const defaultKeepalive: Keepalive = { intervalMs: 30_000, ackTimeoutMs: 10_000 }

/** How often, one after the other, bytes may stand in for the answer to one PING. */
const excuses = 5

/**
 * Pings a client for as long as its session lives and calls `dead`, once, when it does not answer. For a while any byte counts as
 * an answer: on a slow line the PING may stand behind a long change set, which the client is busy taking. Not for ever: after some
 * errors Node keeps a session whose HTTP/2 has ended, and no PING would leave it any more.
 */
export function keepAlive(
  session: ServerHttp2Session,
  { intervalMs, ackTimeoutMs }: Keepalive,
  dead: () => void,
): void {
  let timer: NodeJS.Timeout | undefined
  const after = (ms: number, then: () => void) => {
    clearTimeout(timer)
    // Between a session's end and its `close` it has no socket.
    timer = setTimeout(() => session.destroyed || then(), ms).unref()
  }
  const wait = (bytesSeen: number, left: number) => {
    after(ackTimeoutMs, () => {
      const { bytesRead } = session.socket
      if (left === 0 || bytesRead === bytesSeen) dead()
      else wait(bytesRead, left - 1)
    })
  }
  const ping = () => {
    wait(session.socket.bytesRead, excuses)
    session.ping((error) => {
      if (!error) after(intervalMs, ping)
    })
  }
  session.once('close', () => clearTimeout(timer))
  after(intervalMs, ping)
}
