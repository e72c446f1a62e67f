export type Protocol = 'TCP' | 'UDP' | 'SCTP'

/** Where something listens, or is asked. */
export interface Place {
  readonly protocol: Protocol
  readonly ip: string
  readonly port: number
}

export interface ProbeRequest {
  readonly to: Place
  readonly timeoutMs: number
  /** All probes of this name use one socket, so that they are one flow to conntrack. Default: each has its own. */
  readonly flow?: string
  /** Of a UDP flow: datagrams go on between the probes, as those of a client in mid-work do. Default false. */
  readonly keepGoing?: boolean
  /** The datagram is not sent again while there is no answer, so that its loss is seen. Default false. */
  readonly sendOnce?: boolean
  /** This many bytes are sent over TCP and must come back. */
  readonly bytes?: number
}

export type Outcome =
  /** `from` is the client's address as the server saw it, `port` the port that the server was reached at. */
  | { readonly outcome: 'reached'; readonly server: string; readonly from: string; readonly port: number }
  /** A reset or an ICMP error instead of a connection. */
  | { readonly outcome: 'refused' }
  /** Nothing came back. */
  | { readonly outcome: 'dropped' }
  /** Accepted, then reset or closed without an answer. Packet filters never do this, but a proxy process may. */
  | { readonly outcome: 'broken'; readonly how: string }

/** The answer of a server. */
export interface Echo {
  /** The question, for those who asked several. */
  readonly question: string
  readonly server: string
  readonly from: string
  readonly port: number
}
