import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A span as the exporter's JSON has it. */
export interface OtlpSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { code?: number; message?: string }
  readonly attributes: OtlpAttributes
}

type OtlpAttributes = { key: string; value: Record<string, unknown> }[]

/** A trace collector: a real HTTP server that takes the exporter's JSON, until the test ends. */
export async function otlpReceiver() {
  const spans: OtlpSpan[] = []
  const paths = new Set<string | undefined>()
  const resources: OtlpAttributes[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    paths.add(request.url)
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString())
      for (const { resource, scopeSpans } of body.resourceSpans) {
        resources.push(resource.attributes)
        for (const scope of scopeSpans) spans.push(...scope.spans)
      }
      response.setHeader('content-type', 'application/json').end('{}')
    })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  return { spans, paths, resources, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const after = (a: string, b: string): number => Number(BigInt(a) - BigInt(b))

/** `name` with what is inside it, in the order of their starts; of two that start together, the one that ends first. */
export function spanTree(spans: readonly OtlpSpan[], parent?: string): unknown[] {
  return spans
    .filter((span) => (span.parentSpanId || undefined) === parent)
    .sort((a, b) => after(a.startTimeUnixNano, b.startTimeUnixNano) || after(a.endTimeUnixNano, b.endTimeUnixNano))
    .map((span) => {
      const inside = spanTree(spans, span.spanId)
      return inside.length > 0 ? [span.name, inside] : span.name
    })
}

/** All spans of the traces whose first span has this name. */
export const tracesFrom = (spans: readonly OtlpSpan[], root: string): OtlpSpan[][] =>
  spans
    .filter(({ name, parentSpanId }) => name === root && !parentSpanId)
    .map(({ traceId }) => spans.filter((span) => span.traceId === traceId))

/** An attribute of the first span with this name. */
export const attributeOf = (spans: readonly OtlpSpan[], name: string, key: string): unknown =>
  resourceValue(spans.find((span) => span.name === name)?.attributes, key)

export const resourceValue = (attributes: OtlpAttributes | undefined, key: string): unknown =>
  Object.values(attributes?.find((one) => one.key === key)?.value ?? {})[0]
