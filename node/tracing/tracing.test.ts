import { create } from '@bufbuild/protobuf'
import { localv1, silentLog } from '@kpng/api'
import { NodeState, runBackend } from '@kpng/client'
import { describe, expect, test, vi } from 'vitest'
import { changeSetsOf } from '../../core/sinks/local/index.js'
import { Store } from '../../core/store/index.js'
import { recordingLog, until } from '../../core/testing/until.js'
import { attributeOf, otlpReceiver, resourceValue, spanTree, tracesFrom } from '../testing/otlp-receiver.js'
import { startTracing, tracesUrl } from './tracing.js'

describe('a service that is added', () => {
  test('is one trace from the event to the transaction', async () => {
    const { spans, endpoint } = await otlpReceiver()
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
        close: async () => {},
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

    const [trace = []] = tracesFrom(spans, 'service change')
    expect(spanTree(trace)).toEqual([
      ['service change', ['source event', 'store revision', 'view', ['sync', ['transaction']]]],
    ])
    expect(attributeOf(trace, 'service change', 'kpng.services')).toEqual({ values: [{ stringValue: 'default/web' }] })
    expect(attributeOf(trace, 'service change', 'kpng.revision')).toBe(1)
    expect(Number(trace.find(({ parentSpanId }) => !parentSpanId)?.startTimeUnixNano) / 1e6).toBeCloseTo(
      receivedAtMs,
      0,
    )
    expect(attributeOf(trace, 'transaction', 'kpng.operations')).toBe(3)
  })

  test('a sync that failed says why', async () => {
    const { spans, endpoint } = await otlpReceiver()
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
  const { spans, endpoint } = await otlpReceiver()
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
  expect(spanTree(spans)).toEqual([['connection', ['accept', 'pick', 'connect', 'copy']]])
  expect(attributeOf(spans, 'copy', 'kpng.bytes.to_client')).toBe(2385)
})

test('what the environment says of the process goes with the traces', async () => {
  vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'k8s.cluster.name=blue,service.namespace=net')
  vi.stubEnv('OTEL_SERVICE_NAME', 'proxy')
  const { resources, endpoint } = await otlpReceiver()
  const tracing = await startTracing({ endpoint, nodeName: 'node-a', log: silentLog })
  vi.unstubAllEnvs()
  const changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }
  tracing.recordSync({ view: new NodeState('n'), changes, startedAtMs: 1000, durationMs: 5, steps: [] })
  await tracing.close()
  const of = (key: string) => resourceValue(resources[0], key)
  expect([of('service.name'), of('service.namespace'), of('k8s.cluster.name'), of('k8s.node.name')]).toEqual([
    'proxy',
    'net',
    'blue',
    'node-a',
  ])
})

test('only the part that is asked for is kept', async () => {
  const { spans, endpoint } = await otlpReceiver()
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
