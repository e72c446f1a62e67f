import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { familyOf, silentLog } from '@kpng/api'
import { userspaceBackend } from '@kpng/backend-userspace'
import { reachableAddresses } from '@kpng/linux'
import { startTracing } from '@kpng/node/tracing'
import { afterEach, expect, test } from 'vitest'
import { Cluster, endpoint } from '../backends/userspace/testing/cluster.js'
import { ask, outcome, tcpServer } from '../backends/userspace/testing/peers.js'
import { until } from '../core/testing/until.js'
import { attributeOf, otlpReceiver, spanTree, tracesFrom } from '../node/testing/otlp-receiver.js'
import { Commands } from './testing/commands.js'
import { freePort } from './testing/pages.js'

const commands = new Commands()
afterEach(async () => {
  await commands.cleanUp()
})

/** An address of this machine that is not on loopback. Without one there is no route either, and a connection fails as soon. */
const ownIp = reachableAddresses().find((ip) => familyOf(ip) === 'IPv4') ?? '192.0.2.1'

/** Services whose only endpoint refuses connections. */
const state = (...names: string[]) =>
  JSON.stringify({
    nodes: [{ name: 'node-a' }],
    services: names.map((name, index) => ({
      service: {
        namespace: 'default',
        name,
        type: 'ClusterIP',
        ips: { clusterips: { v4: [`127.12.9.${index + 1}`] } },
        ports: [{ name: 'http', protocol: 1, port: 8080, targetport: 1 }],
      },
      endpoints: [{ podname: 'pod-1', endpoint: { ips: { v4: [ownIp] } }, topology: { node: 'node-a' } }],
    })),
  })

test('kpng to-userspacelin: an edited state is one trace, a connection another', async () => {
  const { spans, paths, endpoint: url } = await otlpReceiver()
  const file = join(commands.folder(), 'state.json')
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  write(state('web'))
  const kpng = commands.start(
    'kpng',
    ...['file', '-i', file, 'to-local', '--node-name', 'node-a', 'to-userspacelin', '--capture', 'none'],
    ...['--otlp-endpoint', url],
    ...['--healthz-bind-address', `127.0.0.1:${await freePort()}`],
    ...['--metrics-bind-address', `127.0.0.1:${await freePort()}`],
  )
  await kpng.says('Proxying in user space')
  // Refused until the portal is open, reset from then on.
  await expect.poll(() => outcome('127.12.9.1', 8080), { timeout: 90_000 }).toBe('ECONNRESET')
  write(state('web', 'shop'))
  await expect.poll(() => outcome('127.12.9.2', 8080), { timeout: 90_000 }).toBe('ECONNRESET')
  // What is still waiting is sent at the end.
  expect(await kpng.stop()).toMatchObject({ code: 0 })

  expect([...paths]).toEqual(['/v1/traces'])
  const change = tracesFrom(spans, 'service change').find(
    (trace) => JSON.stringify(attributeOf(trace, 'service change', 'kpng.services'))?.includes('default/shop') ?? false,
  )
  expect(spanTree(change ?? [])).toEqual([['service change', ['source event', 'store revision', 'view', 'sync']]])
  const connections = tracesFrom(spans, 'connection')
  expect(connections.map((trace) => attributeOf(trace, 'connection', 'kpng.service.port'))).toEqual([
    'default/web:http',
    'default/shop:http',
  ])
  for (const trace of connections) {
    expect(trace.map(({ name }) => name).sort()).toEqual(['accept', 'connect', 'connection', 'pick'])
    expect(trace.find(({ name }) => name === 'connection')?.status).toEqual({
      code: 2,
      message: 'the endpoints do not answer',
    })
  }
})

test('a core in another process: its part of the way is in the trace', async () => {
  const { spans, endpoint: url } = await otlpReceiver()
  const file = join(commands.folder(), 'state.json')
  const socket = `unix://${join(commands.folder(), 'kpng.sock')}`
  writeFileSync(file, state('web'))
  const core = commands.start('kpng', 'file', '-i', file, 'to-api', '--listen', socket)
  await core.says('Serving')
  const node = commands.start(
    'kpng',
    ...['local', '--api', socket, '--node-name', 'node-a', 'to-userspacelin', '--capture', 'none'],
    ...['--otlp-endpoint', url],
    ...['--healthz-bind-address', `127.0.0.1:${await freePort()}`],
    ...['--metrics-bind-address', `127.0.0.1:${await freePort()}`],
  )
  await node.says('Connected')
  writeFileSync(`${file}.new`, state('web', 'shop'))
  renameSync(`${file}.new`, file)
  await expect.poll(() => outcome('127.12.9.2', 8080), { timeout: 90_000 }).toBe('ECONNRESET')
  expect(await node.stop()).toMatchObject({ code: 0 })
  const [change = []] = tracesFrom(spans, 'service change')
  expect(spanTree(change)).toEqual([['service change', ['source event', 'store revision', 'view', 'sync']]])
  expect(attributeOf(change, 'store revision', 'kpng.revision')).toBeGreaterThan(0)
})

test('a connection through the userspace backend is a trace of accept, pick, connect and copy', async () => {
  const { spans, endpoint: url } = await otlpReceiver()
  const tracing = await startTracing({ endpoint: url, nodeName: 'node-a', log: silentLog })
  // Pods of a test are on loopback, where the command never leads.
  const backend = userspaceBackend({ allowLoopback: true, syncPeriodMs: 0 })
  backend.observations.listener.connectionEnded = tracing.recordConnection
  const pod = await tcpServer('127.20.9.9', 'pod', {
    serve: (socket) => void socket.resume().on('end', () => socket.end('a page')),
  })
  try {
    await backend.setup({ requestFullSync: () => {} })
    const cluster = new Cluster(backend)
    await cluster.set('web', { ips: { clusterIps: { v4: ['127.12.9.9'] } } }, [endpoint('127.20.9.9', pod.port)])
    expect(await ask('127.12.9.9', 8080, 'GET')).toBe('a page')
    await until('the end', () => backend.observations.traffic.get('default/web:http')?.active === 0)
  } finally {
    await backend.close()
    await pod.close()
    await tracing.close()
  }
  expect(spanTree(spans)).toEqual([['connection', ['accept', 'pick', 'connect', 'copy']]])
  expect(attributeOf(spans, 'connection', 'kpng.endpoint')).toBe(`127.20.9.9:${pod.port}`)
  expect(attributeOf(spans, 'copy', 'kpng.bytes.to_endpoint')).toBe(3)
  expect(attributeOf(spans, 'copy', 'kpng.bytes.to_client')).toBe(6)
})
