import type { Client } from '@grpc/grpc-js'
import type { Log } from '@kpng/api'
import { parseAddresses } from '../address.js'
import { type ClientOptions, defaultApi } from '../options.js'
import { pause } from '../stop.js'
import { readTlsFiles } from '../tls.js'
import { channelSecurity } from './channel-security.js'
import { explainFailure } from './connection-failure.js'
import { ConnectionLog } from './connection-log.js'
import { KnownState, type Operations } from './known-state.js'
import { followServerStaleness } from './server-staleness.js'
import { WatchCall, type WatchRequest } from './stream.js'

export interface StreamOptions
  extends Pick<ClientOptions, 'api' | 'tls' | 'errorDelayMs' | 'maxMessageBytes' | 'status'> {
  readonly log: Log
  readonly signal: AbortSignal
  /** `/localv1.Sets/Watch` or `/globalv1.Sets/Watch`. */
  readonly method: string
  /** Encodes the request that asks for a change set. */
  readonly request: WatchRequest
  /** With `status`: how often the server is asked whether its own state is stale. Default 30,000. */
  readonly stalenessCheckMs?: number
}

/**
 * How long a server may be silent after the first request while there are others to ask. One that cannot read the cluster itself takes
 * connections too, and would keep its nodes from those that can.
 */
const firstWordMs = 5000
const longestPatienceMs = 30_000

/** Grows with each round in vain, lest two busy servers pass a node to and fro; but after an outage too it is never long. */
export const patienceAfter = (roundsInVain: number): number =>
  Math.min(longestPatienceMs, firstWordMs * (Math.floor(roundsInVain) + 1))

/**
 * The change sets of a server, for as long as the signal lets it: a lost connection is made again, with the next address when
 * there are several. The first change set after each connection is a reset, or what differs if the server can tell it.
 */
export async function* operationsOf(options: StreamOptions): AsyncGenerator<Operations> {
  const { signal, status, errorDelayMs = 1000 } = options
  const log = new ConnectionLog(options.log)
  const targets = parseAddresses(options.api ?? defaultApi)
  // What the user must mend is said at once, not retried for ever.
  if (options.tls) readTlsFiles(options.tls)
  const known = new KnownState()
  let failures = 0
  for (let attempt = 0; !signal.aborted; attempt++) {
    const target = targets[attempt % targets.length] as string
    let received = 0
    try {
      // The only server there is may take as long as it likes.
      const patienceMs = targets.length > 1 ? patienceAfter(failures / targets.length) : undefined
      for await (const operations of oneConnection(target, options, known, patienceMs)) {
        if (received++ === 0) log.connected(target)
        status?.connected()
        failures = 0
        yield operations
      }
    } catch (error) {
      if (signal.aborted) return
      const reason = explainFailure(error, options.tls)
      failures++
      status?.lost()
      if (received > 0) log.lost(target, reason)
      else log.failed(target, reason)
    }
    const triedAll = (attempt + 1) % targets.length === 0
    if (triedAll || received > 0) await pause(errorDelayMs, signal)
  }
}

async function* oneConnection(
  target: string,
  options: StreamOptions,
  known: KnownState,
  patienceMs: number | undefined,
): AsyncGenerator<Operations> {
  const { signal, method, request, status, stalenessCheckMs } = options
  const client = await newClient(target, options)
  const endChecks = status && followServerStaleness(client, status, stalenessCheckMs)
  try {
    const same = (bytes: Uint8Array) => bytes
    const stream = client.makeBidiStreamRequest(method, (bytes: Uint8Array) => Buffer.from(bytes), same)
    const call = new WatchCall(stream, request, known)
    const cancel = () => call.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    const impatient = patienceMs === undefined ? undefined : setTimeout(() => call.giveUpUnlessHeard(), patienceMs)
    try {
      while (!signal.aborted) yield await call.next()
    } finally {
      clearTimeout(impatient)
      signal.removeEventListener('abort', cancel)
      call.cancel()
    }
  } finally {
    endChecks?.()
    client.close()
  }
}

export async function newClient(
  target: string,
  { tls, maxMessageBytes = 4 << 20 }: Pick<ClientOptions, 'tls' | 'maxMessageBytes'>,
): Promise<Client> {
  // Loaded when it is needed: it is the largest part of a client, and in-process use does without it.
  const { Client } = await import('@grpc/grpc-js')
  const { credentials, options } = await channelSecurity(target, tls)
  return new Client(target, credentials, {
    ...options,
    'grpc.max_receive_message_length': maxMessageBytes,
    // A server that vanished without a word is noticed; a healthy quiet one is left alone.
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
  })
}
