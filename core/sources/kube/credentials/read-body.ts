import type { Readable } from 'node:stream'

/** The beginning of a body as text, at most 64 KiB; the rest is thrown away. For answers that are errors. */
export async function readBody(body: Readable, maxBytes = 65_536): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= maxBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8')
}
