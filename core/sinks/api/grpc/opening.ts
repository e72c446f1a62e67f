import type { IncomingHttpHeaders } from 'node:http2'
import { RpcError, Status } from './status.js'

/** What to do with a stream that a client has just opened, read from its headers alone. */
export type Opening =
  /** It is a call; `timeoutMs` is what the client gives it, undefined for all the time it wants. */
  | { readonly kind: 'call'; readonly path: string; readonly timeoutMs: number | undefined }
  /** It speaks gRPC, and the answer is no. */
  | { readonly kind: 'refused'; readonly error: RpcError }
  /** It does not speak gRPC: answered in HTTP. */
  | { readonly kind: 'http'; readonly status: 405 | 415; readonly sentence: string }

const grpcContentType = /^application\/grpc(\+proto)?\s*(;|$)/i

export function readOpening(headers: IncomingHttpHeaders, serves: (path: string) => boolean): Opening {
  const method = headers[':method'] ?? ''
  if (method !== 'POST') return http(405, `This is a gRPC server: it takes POST, not ${method}.`)
  if (!grpcContentType.test(headers['content-type'] ?? '')) {
    return http(415, 'This is a gRPC server: the content type must be application/grpc or application/grpc+proto.')
  }
  const path = headers[':path'] ?? ''
  if (!serves(path)) return refused(Status.UNIMPLEMENTED, `This server has no method ${path}`)

  const encoding = headers['grpc-encoding'] ?? 'identity'
  if (encoding !== 'identity') {
    return refused(Status.UNIMPLEMENTED, `This server does not read grpc-encoding ${encoding}: use identity`)
  }
  const timeout = headers['grpc-timeout']
  if (timeout === undefined) return { kind: 'call', path, timeoutMs: undefined }
  const timeoutMs = parseTimeout(String(timeout))
  if (timeoutMs === undefined) {
    return refused(
      Status.INVALID_ARGUMENT,
      `The grpc-timeout ${timeout} cannot be read: give at most 8 digits and one of H, M, S, m, u, n`,
    )
  }
  return { kind: 'call', path, timeoutMs }
}

const http = (status: 405 | 415, sentence: string): Opening => ({ kind: 'http', status, sentence })

const refused = (code: RpcError['code'], message: string): Opening => ({
  kind: 'refused',
  error: new RpcError(code, message),
})

const msPerUnit: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/** `grpc-timeout` in milliseconds, rounded up so that no client is cut off early; undefined when it cannot be read. */
export function parseTimeout(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  const factor = unit === undefined ? undefined : msPerUnit[unit]
  return factor === undefined ? undefined : Math.ceil(Number(digits) * factor)
}
