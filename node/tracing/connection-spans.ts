import type { ConnectionRecord } from '@kpng/client'
import type { SpanTree } from './span-tree.js'

/** connection: accept, pick, connect, copy. */
export function connectionSpans(connection: ConnectionRecord): SpanTree {
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
