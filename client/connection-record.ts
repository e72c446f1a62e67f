/** What a connection was, told when it is over: a TCP connection, or a UDP session. Unix times in milliseconds, with fractions. */
export interface ConnectionRecord {
  /** `namespace/name:port` */
  readonly servicePort: string
  /** `10.0.0.1:4711` */
  readonly client: string
  /** The endpoint that was reached; missing when none was. A UDP session has one as soon as its socket is open. */
  readonly endpoint?: string
  /** The connection was accepted, or the first packet of the session came. */
  readonly acceptedAtMs: number
  /** The first endpoint was chosen, or it was clear that there is none. */
  readonly pickedAtMs: number
  /** An endpoint answered, maybe not the first one that was tried; or all tries were over. */
  readonly connectedAtMs: number
  /** Both directions were closed, or the session expired. */
  readonly endedAtMs: number
  /** Bytes from the client to the endpoint. */
  readonly bytesToEndpoint: number
  /** Bytes from the endpoint to the client. */
  readonly bytesToClient: number
  /** Why it failed, or ended before its time. */
  readonly error?: string
}
