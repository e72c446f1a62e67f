import { once } from 'node:events'
import { connect } from 'node:net'
import { connectionsOf } from '@kpng/node/agent-api'
import { afterEach, expect, test } from 'vitest'
import { until } from '../../core/testing/until.js'
import { userspaceBackend } from './backend.js'
import { Cluster, endpoint, UDP } from './testing/cluster.js'
import { tcpServer, udpClient, udpServer } from './testing/peers.js'
import { moverOptions, movers } from './testing/splice-script.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const [ip, port, podIp] = ['127.40.10.1', 8080, '127.20.10.1']
const ips = { clusterIps: { v4: [ip] } }

test.each(movers)('open connections say who talks to whom, since when, and how much so far (%s)', async (mover) => {
  const backend = userspaceBackend({ allowLoopback: true, syncPeriodMs: 0, ...(await moverOptions(mover)) })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  const cluster = new Cluster(backend)
  const pod = await tcpServer(podIp, 'pod', {
    serve: (socket) => void socket.on('data', () => socket.write('four score')),
  })
  const dns = await udpServer(podIp, 'dns')
  closers.push(
    () => pod.close(),
    () => dns.close(),
  )
  const ports = [{ name: 'http', protocol: UDP, port: 5353, targetPort: dns.port }]
  await cluster.set('web', { ips }, [endpoint(podIp, pod.port)])
  await cluster.set('dns', { ips: { clusterIps: { v4: ['127.40.10.2'] } }, ports }, [endpoint(podIp, dns.port)])
  const { open } = backend.observations
  expect(await open?.(10)).toEqual({ total: 0, connections: [] })

  const client = connect({ host: ip, port, localAddress: '127.0.0.1' })
  client.on('error', () => {})
  await once(client, 'connect')
  client.write('hello')
  await once(client, 'data')
  const asker = await udpClient('127.0.0.1')
  closers.push(() => asker.close())
  expect(await asker.ask('127.40.10.2', 5353, 'abc', 5000)).toBe('dns:abc')
  const { total, connections = [], counters } = await connectionsOf(backend, 'userspace')
  expect(total).toBe(2)
  const since = expect.stringMatching(/^\d{4}-.*Z$/)
  const byService = [...connections].sort((a, b) => (a.service < b.service ? -1 : 1))
  expect(byService).toEqual([
    {
      ...{ protocol: 'UDP', client: expect.stringMatching(/^127\.0\.0\.1:\d+$/), frontend: '127.40.10.2:5353' },
      ...{ service: 'default/dns', endpoint: `${podIp}:${dns.port}`, bytesFromClient: 3, bytesToClient: 7, since },
    },
    {
      ...{ protocol: 'TCP', client: `127.0.0.1:${client.localPort}`, frontend: `${ip}:${port}` },
      ...{ service: 'default/web', endpoint: `${podIp}:${pod.port}`, bytesFromClient: 5, bytesToClient: 10, since },
    },
  ])
  expect(counters).toContainEqual({ service: 'default/web', connections: 1, bytes: 15 })
  expect((await open?.(1))?.connections).toHaveLength(1)

  client.resetAndDestroy()
  await until(
    'it is gone',
    async () => (await open?.(10))?.connections.every(({ protocol }) => protocol === 'udp') === true,
  )
})

test('a data plane in the kernel counts, or says why it cannot', async () => {
  const connection = { namespace: 'default', service: 'web', port: 'a', connections: 3 }
  const backend = (connections?: () => Promise<(typeof connection)[]>) =>
    ({
      features: () => ({ name: 'nftables' }),
      observations: { listener: {}, ...(connections ? { connections } : {}) },
    }) as never
  const counting = backend(async () => [connection, { ...connection, port: 'b' }])
  expect(await connectionsOf(counting, 'nftables')).toMatchObject({
    counters: [{ service: 'default/web', connections: 6 }],
  })
  const { why, counters } = await connectionsOf(backend(), 'nftables')
  expect([why, counters]).toEqual([expect.stringContaining('--service-counters'), undefined])
  expect((await connectionsOf(undefined, 'json')).why).toMatch(/^With json, connections do not pass/)
})
