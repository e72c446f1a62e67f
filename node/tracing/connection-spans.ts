import type { SpanTree } from './span-tree.js'

/** A connection that a userspace proxy carried. Unix times in milliseconds. */
export interface ConnectionTrace {
  /** `namespace/name:port` */
  readonly servicePort: string
  readonly client: string
  /** The endpoint that was reached; missing when none was. */
  readonly endpoint?: string
  readonly acceptedAtMs: number
  /** An endpoint was chosen. */
  readonly pickedAtMs: number
  /** It answered, or all tries were over. */
  readonly connectedAtMs: number
  readonly endedAtMs: number
  readonly bytesToEndpoint: number
  readonly bytesToClient: number
  readonly error?: string
}

/** connection: accept, pick, connect, copy. */
export function connectionSpans(connection: ConnectionTrace): SpanTree {
  const { servicePort, client, endpoint, acceptedAtMs, pickedAtMs, connectedAtMs, endedAtMs, error } = connection
  const reached = endpoint === undefined ? {} : { 'kpng.endpoint': endpoint }
  return {
    name: 'connection',
    startMs: acceptedAtMs,
    endMs: endedAtMs,
    attributes: { 'kpng.service.port': servicePort, 'client.address': client, ...reached },
    ...(error === undefined ? {} : { error }),
    children: [
      { name: 'accept', startMs: acceptedAtMs, endMs: acceptedAtMs },
      { name: 'pick', startMs: acceptedAtMs, endMs: pickedAtMs, attributes: reached },
      {
        name: 'connect',
        startMs: pickedAtMs,
        endMs: connectedAtMs,
        ...(endpoint === undefined && error !== undefined ? { error } : {}),
      },
      ...(endpoint === undefined
        ? []
        : [
            {
              name: 'copy',
              startMs: connectedAtMs,
              endMs: endedAtMs,
              attributes: {
                'kpng.bytes.to_endpoint': connection.bytesToEndpoint,
                'kpng.bytes.to_client': connection.bytesToClient,
              },
            },
          ]),
    ],
  }
}
