import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Client } from '@grpc/grpc-js'
import { health } from '@kpng/api'
import type { WatchStatus } from '../source-status.js'

/** The name under which `grpc.health.v1` says whether the server's own source is well. NOT_SERVING: what it serves is stale. */
export const sourceHealthService = 'kpng.source'

const request = toBinary(
  health.HealthCheckRequestSchema,
  create(health.HealthCheckRequestSchema, { service: sourceHealthService }),
)

/**
 * Asks a server again and again whether its own state is stale: while its source is away it has no changes to tell, and so nothing else would
 * say it. Returns the function that ends it.
 */
export function followServerStaleness(client: Client, status: WatchStatus, everyMs = 30_000): () => void {
  const note = (error: unknown, answer?: health.HealthCheckResponse) => {
    // A server that does not know the question says nothing, and one that is gone is noticed otherwise.
    if (error || !answer) return
    const isStale = answer.status === health.HealthCheckResponse_ServingStatus.NOT_SERVING
    status.serverStaleSinceMs = isStale ? (status.serverStaleSinceMs ?? performance.now()) : undefined
  }
  const ask = () => {
    timer = setTimeout(ask, everyMs)
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(health.HealthCheckResponseSchema, bytes),
      request,
      { deadline: Date.now() + everyMs },
      note,
    )
  }
  // Not all nodes at once after their core has come back.
  let timer = setTimeout(ask, Math.random() * everyMs)
  return () => clearTimeout(timer)
}
