// What the kit and its agents say to each other: one JSON object a line, over the agent's standard input and output.

export type Protocol = 'TCP' | 'UDP'

/** Where something listens, or is asked. */
export interface Place {
  readonly protocol: Protocol
  readonly ip: string
  readonly port: number
}

export type Request =
  /** Begin to answer at these places. */
  | { readonly op: 'serve'; readonly places: readonly Place[] }
  /**
   * Ask at a place. With `flow`, all probes of that name use one socket, so that they are one flow to conntrack. With `bytes`, so many are
   * sent over TCP and must come back.
   */
  | {
      readonly op: 'probe'
      readonly to: Place
      readonly timeoutMs: number
      readonly flow?: string
      readonly bytes?: number
    }
  /** Carry every connection to a place to the Unix socket at `path`. */
  | { readonly op: 'relay'; readonly at: Place; readonly path: string }

export type Outcome =
  /** `from` is the client's address as the server saw it, `port` the port that the server was reached at. */
  | { readonly outcome: 'reached'; readonly server: string; readonly from: string; readonly port: number }
  /** A reset or an ICMP error instead of a connection. */
  | { readonly outcome: 'refused' }
  /** Nothing came back. */
  | { readonly outcome: 'dropped' }
  /** Accepted, then reset or closed without an answer: what no packet filter does, but a proxy process may. */
  | { readonly outcome: 'broken'; readonly how: string }

export type Answer =
  | { readonly id: number; readonly result: Outcome | null }
  | { readonly id: number; readonly error: string }

/** What an agent says first, unasked: the system settings are made, requests are welcome. */
export interface Hello {
  readonly ready: true
}

/** What a server answers to whoever asks. */
export interface Echo {
  /** The question, for whoever asked several. */
  readonly question: string
  readonly server: string
  readonly from: string
  readonly port: number
}
