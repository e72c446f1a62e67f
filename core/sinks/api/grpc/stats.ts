import { type Log, type LogFields, OncePerMinute } from '@kpng/api'

/** What goes wrong with connections, by kind. */
export type Fault =
  /** It does not speak HTTP/2: a browser, a scanner, TLS on a plain port. */
  | 'protocol'
  /** No TLS session came about: no certificate or a wrong one, plain text on a TLS port. */
  | 'tls'
  /** It connected and then never began, or never called. */
  | 'slow'
  /** It answered no more pings. */
  | 'dead'
  /** It opened calls faster than any client needs to. */
  | 'flood'
  /** Turned away because the server has as many as it takes. */
  | 'full'
  /** Turned away because its peer has as many as one peer may have. */
  | 'crowd'

const sentences: Readonly<Record<Fault, string>> = {
  protocol:
    'Closed a connection that does not speak gRPC here: a client with TLS on a plain port, or of another protocol',
  tls: 'Closed a connection without a valid TLS session: check its certificate, and that it uses TLS',
  slow: 'Closed a connection that never made a gRPC call',
  dead: 'Closed a connection whose client answers no more pings',
  flood: 'Closed a connection that opened too many calls: its client is broken or hostile',
  full: 'Turned a connection away: the server has as many as it takes. Raise the limit of open files, or add a server',
  crowd:
    'Turned a connection away: its address has as many as one client may have. If many clients share it, raise --max-connections-per-client',
}

/** The server's numbers. Plain fields: read them whenever you like. */
export interface ServerStats {
  /** Open now. */
  readonly connections: number
  readonly calls: number
  /** Since the start. */
  readonly connectionsAccepted: number
  readonly callsStarted: number
  readonly faults: Readonly<Record<Fault, number>>
}

export class Stats implements ServerStats {
  connections = 0
  calls = 0
  connectionsAccepted = 0
  callsStarted = 0
  readonly faults: Record<Fault, number> = { protocol: 0, tls: 0, slow: 0, dead: 0, flood: 0, full: 0, crowd: 0 }
  readonly #log: Log
  readonly #loud: OncePerMinute

  constructor(log: Log, nowMs?: () => number) {
    this.#log = log
    this.#loud = new OncePerMinute(nowMs)
  }

  /**
   * Counts a fault. The log warns once per minute and kind, of TLS per reason too; the other lines are for those who turn the verbosity up.
   * Neither a port scan nor a thousand nodes with the wrong certificate may fill a log.
   */
  fault(kind: Fault, fields: LogFields): void {
    this.faults[kind] += 1
    const times = this.#loud.times(kind === 'tls' ? `${kind}: ${fields.error}` : kind)
    if (times === undefined) this.#log.detail(1, sentences[kind], fields)
    else this.#log.warn(sentences[kind], { ...fields, times })
  }
}
