import { createHash } from 'node:crypto'

/** One digest of things that come in any order. */
export const digestOf = (parts: readonly string[]): string =>
  createHash('sha256')
    .update([...parts].sort().join('\0'))
    .digest('hex')
    .slice(0, 16)
