/** The status codes of gRPC, by their names in its specification. */
export const Status = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

export type StatusCode = (typeof Status)[keyof typeof Status]

/** How a call ends when it does not end well. Code and message go to the client: name nothing here that it may not see. */
export class RpcError extends Error {
  readonly code: StatusCode

  constructor(code: StatusCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'RpcError'
    this.code = code
  }
}

/** The headers or trailers that say how a call ended. */
export function statusHeaders(code: StatusCode, message = ''): Record<string, string> {
  const headers: Record<string, string> = { 'grpc-status': String(code) }
  if (message !== '') headers['grpc-message'] = percentEncode(message)
  return headers
}

const space = 0x20
const tilde = 0x7e
const percent = 0x25

/** `grpc-message` as the specification wants it: UTF-8, every byte outside printable ASCII, and `%`, as %XX. */
export function percentEncode(message: string): string {
  let encoded = ''
  for (const byte of Buffer.from(message, 'utf8')) {
    const plain = byte >= space && byte <= tilde && byte !== percent
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}
