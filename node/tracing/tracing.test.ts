import { createServer, type Server } from 'node:http'
import { create } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { NodeState, runBackend } from '@kpng/client'
import { afterEach, describe, expect, test } from 'vitest'
import { changeSetsOf } from '../../core/sinks/local/index.js'
import { Store } from '../../core/store/index.js'
import { recordingLog, until } from '../../core/testing/until.js'
import { startTracing } from './index.js'
import { tracesUrl } from './tracing.js'

// Against a real OTLP receiver: an HTTP server that takes the exporter's JSON.

interface OtlpSpan {
  readonly name: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceId: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { code?: number; message?: string }
  readonly attributes: { key: string; value: Record<string, unknown> }[]
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function receiver() {
  const spans: OtlpSpan[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString())
      for (const resource of body.resourceSpans) for (const scope of resource.scopeSpans) spans.push(...scope.spans)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  return { spans, endpoint: `http://127.0.0.1:${port}` }
}

/** `name` with what is inside it, in the order of their starts and ends. */
function tree(spans: readonly OtlpSpan[], parent?: string): unknown[] {
  return spans
    .filter((span) => (span.parentSpanId || undefined) === parent)
    .sort(
      (a, b) =>
        Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)) ||
        Number(BigInt(a.endTimeUnixNano) - BigInt(b.endTimeUnixNano)),
    )
    .map((span) => {
      const inside = tree(spans, span.spanId)
      return inside.length > 0 ? [span.name, inside] : span.name
    })
}

const attribute = (span: OtlpSpan | undefined, key: string) =>
  Object.values(span?.attributes.find((one) => one.key === key)?.value ?? {})[0]

describe('a service that is added', () => {
  test('is one trace from the event to the transaction', async () => {
    const { spans, endpoint } = await receiver()
    const tracing = await startTracing({ endpoint, nodeName: 'node-a', log: silentLog })
    const store = new Store()
    store.update((tx) => tx.setSynced('services', 'endpoints', 'nodes'))
    const stop = new AbortController()
    let syncs = 0
    const running = runBackend(
      {
        setup: async () => {},
        sync: async (_view, _changes, steps) => {
          const startedAtMs = performance.timeOrigin + performance.now()
          await new Promise((resolve) => setTimeout(resolve, 5))
          steps?.push({
            name: 'transaction',
            startedAtMs,
            endedAtMs: startedAtMs + 4,
            attributes: { 'kpng.operations': 3 },
          })
          syncs++
        },
        cleanup: async () => {},
      },
      {
        changeSets: changeSetsOf(store),
        nodeName: 'node-a',
        log: silentLog,
        signal: stop.signal,
        withSteps: true,
        onSync: tracing.recordSync,
      },
    )
    await until('the first sync', () => syncs === 1)
    const receivedAtMs = performance.timeOrigin + performance.now()
    store.update(
      (tx) => tx.setService(create(localv1.ServiceSchema, { namespace: 'default', name: 'web' })),
      receivedAtMs,
    )
    await until('the second sync', () => syncs === 2)
    stop.abort()
    await running
    await tracing.close()

    const root = spans.find(({ name }) => name === 'service change')
    const trace = spans.filter(({ traceId }) => traceId === root?.traceId)
    expect(tree(trace)).toEqual([
      ['service change', ['source event', 'store revision', 'view', ['sync', ['transaction']]]],
    ])
    expect(attribute(root, 'kpng.services')).toEqual({ values: [{ stringValue: 'default/web' }] })
    expect(attribute(root, 'kpng.revision')).toBe(1)
    expect(Number(root?.startTimeUnixNano) / 1e6).toBeCloseTo(receivedAtMs, 0)
    expect(
      attribute(
        trace.find(({ name }) => name === 'transaction'),
        'kpng.operations',
      ),
    ).toBe(3)
  })

  test('a sync that failed says why', async () => {
    const { spans, endpoint } = await receiver()
    const tracing = await startTracing({ endpoint, nodeName: 'node-a', log: silentLog })
    const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
    tracing.recordSync({
      view: new NodeState('node-a'),
      changes,
      startedAtMs: 1000,
      durationMs: 5,
      steps: [],
      error: new Error('no rights'),
    })
    await tracing.close()
    expect(spans).toMatchObject([{ name: 'sync', status: { code: 2, message: 'no rights' } }])
  })
})

test('a connection that was served: accept, pick, connect, copy with its bytes', async () => {
  const now = Date.now()
  const { spans, endpoint } = await receiver()
  const tracing = await startTracing({ endpoint, nodeName: 'node-a', log: silentLog })
  tracing.recordConnection({
    servicePort: 'default/web:http',
    client: '10.0.0.1:4711',
    endpoint: '10.1.0.1:8080',
    acceptedAtMs: now,
    pickedAtMs: now + 1,
    connectedAtMs: now + 3,
    endedAtMs: now + 10,
    bytesToEndpoint: 81,
    bytesToClient: 2385,
  })
  await tracing.close()
  expect(tree(spans)).toEqual([['connection', ['accept', 'pick', 'connect', 'copy']]])
  expect(
    attribute(
      spans.find(({ name }) => name === 'copy'),
      'kpng.bytes.to_client',
    ),
  ).toBe(2385)
})

test('only the part that is asked for is kept', async () => {
  const { spans, endpoint } = await receiver()
  const tracing = await startTracing({ endpoint, nodeName: 'node-a', log: silentLog, sampleRatio: 0 })
  const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
  for (let i = 0; i < 100; i++)
    tracing.recordSync({ view: new NodeState('n'), changes, startedAtMs: 1000, durationMs: 5, steps: [] })
  await tracing.close()
  expect(spans).toEqual([])
  await expect(startTracing({ endpoint, nodeName: 'n', log: silentLog, sampleRatio: 2 })).rejects.toThrow(
    /from 0 \(none\) to 1/,
  )
})

test('a collector that is away is said once, and everything goes on', async () => {
  const { lines, log } = recordingLog()
  const tracing = await startTracing({ endpoint: 'http://127.0.0.1:1', nodeName: 'n', log, exportIntervalMs: 20 })
  const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
  tracing.recordSync({ view: new NodeState('n'), changes, startedAtMs: 1000, durationMs: 5, steps: [] })
  await until('the warning', () => lines.some((line) => line.includes('cannot be reached')), 20_000)
  await tracing.close().catch(() => {})
  expect(lines.filter((line) => line.includes('cannot be reached'))).toHaveLength(1)
})

test('addresses of collectors', () => {
  expect(tracesUrl('http://c:4318')).toBe('http://c:4318/v1/traces')
  expect(tracesUrl('https://c/otlp/v1/traces')).toBe('https://c/otlp/v1/traces')
  expect(() => tracesUrl('c:4318')).toThrow(/http or https|no address/)
})
