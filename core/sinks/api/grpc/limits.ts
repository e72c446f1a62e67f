/** What one server takes and how long it waits. Sizes in bytes unless the name says otherwise. */
export interface Limits {
  /**
   * The largest request message. Default 64 KiB: the largest that makes sense is the name of a node. Each call of each connection may
   * keep that much of a message that never ends, so gRPC's usual 4 MiB would be 400 MiB for one client.
   */
  readonly maxRequestBytes: number
  /** All headers of one request together. Default 16 KiB. */
  readonly maxHeaderBytes: number
  /** Further connections are turned away. Default 20,000. */
  readonly maxConnections: number
  /** Calls at a time on one connection; the client queues the others. Default 100. */
  readonly maxStreamsPerConnection: number
  /**
   * What HTTP/2 may keep for one connection (headers, stream state), before it refuses further streams. Default 16: a hundred
   * calls need less than 1, and messages are not counted, they wait in the calls.
   */
  readonly maxSessionMemoryMiB: number
  /** From accept to the TLS session, and from there to the client's first HTTP/2 SETTINGS. Default 10,000. */
  readonly setupTimeoutMs: number
  /** How long a call that is over waits for the client to finish its side before the stream is reset. Default 5,000. */
  readonly lingerMs: number
  /** When the kernel starts to probe a silent TCP connection. Default 60,000. */
  readonly tcpKeepAliveMs: number
  /** How often the TLS files are looked at for a renewal. Default 60,000. */
  readonly tlsReloadMs: number
}

export const defaultLimits: Limits = {
  maxRequestBytes: 64 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 20_000,
  maxStreamsPerConnection: 100,
  maxSessionMemoryMiB: 16,
  setupTimeoutMs: 10_000,
  lingerMs: 5_000,
  tcpKeepAliveMs: 60_000,
  tlsReloadMs: 60_000,
}
