import { renameSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { userspaceBackend } from '@kpng/backend-userspace'
import { startTracing } from '@kpng/node/tracing'
import { afterEach, expect, test } from 'vitest'
import { Cluster, endpoint } from '../backends/userspace/testing/cluster.js'
import { ask, outcome, tcpServer } from '../backends/userspace/testing/peers.js'
import { until } from '../core/testing/until.js'
import { Commands } from './testing/commands.js'

// Against a real OTLP receiver: an HTTP server that takes the exporter's JSON.

interface OtlpSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { code?: number; message?: string }
  readonly attributes: { key: string; value: Record<string, unknown> }[]
}

const commands = new Commands()
const servers: Server[] = []
afterEach(async () => {
  await commands.cleanUp()
  for (const server of servers.splice(0)) server.close()
})

async function receiver() {
  const spans: OtlpSpan[] = []
  const paths = new Set<string | undefined>()
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    paths.add(request.url)
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString())
      for (const resource of body.resourceSpans) for (const scope of resource.scopeSpans) spans.push(...scope.spans)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  return { spans, paths, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const after = (a: string, b: string): number => Number(BigInt(a) - BigInt(b))

/** `name` with what is inside it, in the order of their starts; of two that start together, the one that ends first. */
function tree(spans: readonly OtlpSpan[], parent?: string): unknown[] {
  return spans
    .filter((span) => (span.parentSpanId || undefined) === parent)
    .sort((a, b) => after(a.startTimeUnixNano, b.startTimeUnixNano) || after(a.endTimeUnixNano, b.endTimeUnixNano))
    .map((span) => {
      const inside = tree(spans, span.spanId)
      return inside.length > 0 ? [span.name, inside] : span.name
    })
}

/** All spans of the traces whose first span has this name. */
const traces = (spans: readonly OtlpSpan[], root: string): OtlpSpan[][] =>
  spans
    .filter(({ name, parentSpanId }) => name === root && !parentSpanId)
    .map(({ traceId }) => spans.filter((span) => span.traceId === traceId))

const attribute = (spans: readonly OtlpSpan[], name: string, key: string) => {
  const span = spans.find((one) => one.name === name)
  return Object.values(span?.attributes.find((one) => one.key === key)?.value ?? {})[0]
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const state = (sourceRange: string, ...names: string[]) =>
  JSON.stringify({
    nodes: [{ name: 'node-a' }],
    services: names.map((name, index) => ({
      service: {
        namespace: 'default',
        name,
        type: 'LoadBalancer',
        ips: { loadbalancerips: { v4: [`127.12.9.${index + 1}`] } },
        ports: [{ name: 'http', protocol: 1, port: 8080, targetport: 8080 }],
        ipfilters: [{ sourceranges: [sourceRange] }],
      },
      endpoints: [{ podname: 'pod-1', endpoint: { ips: { v4: ['192.0.2.1'] } }, topology: { node: 'node-a' } }],
    })),
  })

test('kpng to-userspacelin: an edited state is one trace, a connection another', async () => {
  const { spans, paths, url } = await receiver()
  const file = join(commands.folder(), 'state.json')
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  // Nobody is in the range: the client is turned away before any endpoint is dialed, and nothing leaves the machine.
  write(state('198.51.100.0/24', 'web'))
  const kpng = commands.start(
    'kpng',
    ...['file', '-i', file, 'to-local', '--node-name', 'node-a', 'to-userspacelin', '--capture', 'none'],
    ...['--otlp-endpoint', url],
    ...['--healthz-bind-address', `127.0.0.1:${await freePort()}`],
    ...['--metrics-bind-address', `127.0.0.1:${await freePort()}`],
  )
  await kpng.says('Proxying in user space')
  // Refused until the portal is open, reset at the door from then on.
  await expect.poll(() => outcome('127.12.9.1', 8080), { timeout: 10_000 }).toBe('ECONNRESET')
  write(state('198.51.100.0/24', 'web', 'shop'))
  await expect.poll(() => outcome('127.12.9.2', 8080), { timeout: 10_000 }).toBe('ECONNRESET')
  // What is still waiting is sent at the end.
  expect(await kpng.stop()).toMatchObject({ code: 0 })

  expect([...paths]).toEqual(['/v1/traces'])
  const change = traces(spans, 'service change').find(
    (trace) => JSON.stringify(attribute(trace, 'service change', 'kpng.services'))?.includes('default/shop') ?? false,
  )
  expect(tree(change ?? [])).toEqual([['service change', ['source event', 'store revision', 'view', 'sync']]])
  const connections = traces(spans, 'connection')
  expect(connections.map((trace) => attribute(trace, 'connection', 'kpng.service.port'))).toEqual([
    'default/web:http',
    'default/shop:http',
  ])
  for (const trace of connections) {
    expect(trace.map(({ name }) => name).sort()).toEqual(['accept', 'connect', 'connection', 'pick'])
    expect(trace.find(({ name }) => name === 'connection')?.status).toEqual({
      code: 2,
      message: 'the client was refused: source-ranges',
    })
  }
})

test('a connection through the userspace backend is a trace of accept, pick, connect and copy', async () => {
  const { spans, url } = await receiver()
  const tracing = await startTracing({ endpoint: url, nodeName: 'node-a', log: silentLog })
  // Pods of a test are on loopback, where the command never leads.
  const backend = userspaceBackend({ allowLoopbackEndpoints: true, syncPeriodMs: 0 })
  backend.onConnection = tracing.recordConnection
  const pod = await tcpServer('127.20.9.9', 'pod', {
    serve: (socket) => void socket.resume().on('end', () => socket.end('a page')),
  })
  try {
    await backend.setup({ requestFullSync: () => {} })
    const cluster = new Cluster(backend)
    await cluster.set('web', { ips: { clusterIps: { v4: ['127.12.9.9'] } } }, [endpoint('127.20.9.9', pod.port)])
    expect(await ask('127.12.9.9', 8080, 'GET')).toBe('a page')
    await until('the end', () => backend.counters.get('default/web:http')?.active === 0)
  } finally {
    await backend.close()
    await pod.close()
    await tracing.close()
  }
  expect(tree(spans)).toEqual([['connection', ['accept', 'pick', 'connect', 'copy']]])
  expect(attribute(spans, 'connection', 'kpng.endpoint')).toBe(`127.20.9.9:${pod.port}`)
  expect(attribute(spans, 'copy', 'kpng.bytes.to_endpoint')).toBe(3)
  expect(attribute(spans, 'copy', 'kpng.bytes.to_client')).toBe(6)
})
