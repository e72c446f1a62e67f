import { create, toBinary } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1 } from '@kpng/api'
import { type ClientOptions, operationsOf } from '@kpng/client'
import type { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import { RelayedState } from './relayed-state.js'

export interface ApiSourceOptions
  extends Pick<ClientOptions, 'api' | 'tls' | 'errorDelayMs' | 'maxMessageBytes' | 'status'> {
  readonly store: Store
  readonly log: Log
  /** Where bad items are logged and counted. Default: one of its own. */
  readonly skips?: Skips
  /** Ends it. */
  readonly signal: AbortSignal
}

const extraSets = [localv1.Set.GLOBAL_SERVICE_CIDRS]
const request = (known?: localv1.Known) =>
  toBinary(globalv1.GlobalWatchReqSchema, create(globalv1.GlobalWatchReqSchema, { extraSets, ...(known && { known }) }))

/**
 * Relays another kpng's global state into the store until the signal is aborted. While the upstream is away the last state
 * stays; when it is back only what differs is written.
 */
export async function relayApi({ store, skips, ...options }: ApiSourceOptions): Promise<void> {
  const state = new RelayedState(skips ?? new Skips(options.log))
  for await (const operations of operationsOf({ ...options, method: '/globalv1.Sets/Watch', request })) {
    store.update((transaction) => {
      state.apply(operations, transaction)
      transaction.setSynced('services', 'endpoints', 'nodes')
    })
  }
}
