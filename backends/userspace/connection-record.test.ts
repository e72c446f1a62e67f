import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { ConnectionRecord } from '@kpng/client'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../core/testing/until.js'
import { userspaceBackend } from './backend.js'
import type { UserspaceOptions } from './options.js'
import { Cluster, endpoint, UDP } from './testing/cluster.js'
import { ask, outcome, tcpServer, udpClient, udpServer } from './testing/peers.js'
import { moverOptions, movers } from './testing/splice-script.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const [ip, port, podIp] = ['127.40.9.1', 8080, '127.20.9.1']
const ips = { clusterIps: { v4: [ip] } }
const web = 'default/web:http'

let mover: (typeof movers)[number] = 'portable'

async function start(options: UserspaceOptions = {}) {
  const common = { allowLoopback: true, syncPeriodMs: 0, ...(await moverOptions(mover)) }
  const backend = userspaceBackend({ ...common, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  const records: ConnectionRecord[] = []
  backend.observations.listener = { connectionEnded: (record) => void records.push(record) }
  return { backend, records, cluster: new Cluster(backend) }
}

async function pod(serve?: (socket: Socket) => void) {
  const server = await tcpServer(podIp, 'pod', serve ? { serve } : {})
  closers.push(() => server.close())
  return server
}

/** A port that nobody listens on. */
async function deadPort(): Promise<number> {
  const server = await tcpServer(podIp, 'dead')
  await server.close()
  return server.port
}

/** accept ≤ pick ≤ connect ≤ end, in Unix time. */
function expectGrowingTimes({ acceptedAtMs, pickedAtMs, connectedAtMs, endedAtMs }: ConnectionRecord): void {
  const times = [acceptedAtMs, pickedAtMs, connectedAtMs, endedAtMs]
  expect(times).toEqual([...times].sort((a, b) => a - b))
  expect(Math.abs(Date.now() - endedAtMs)).toBeLessThan(20_000)
}

describe.each(movers)('a TCP connection, %s', (each) => {
  beforeAll(() => {
    mover = each
  })

  it('that was served is told once, with its times and bytes', async () => {
    const { cluster, records } = await start()
    const server = await pod((socket) => {
      socket.resume()
      socket.on('end', () => socket.end('four score and seven'))
    })
    await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    await ask(ip, port, 'hello')
    await until('the record', () => records.length > 0)
    expect(records).toEqual([
      {
        servicePort: web,
        client: expect.stringMatching(/^127\.0\.0\.1:\d+$|^127\.13\.9\.1:\d+$/),
        endpoint: `${podIp}:${server.port}`,
        acceptedAtMs: expect.any(Number),
        pickedAtMs: expect.any(Number),
        connectedAtMs: expect.any(Number),
        endedAtMs: expect.any(Number),
        bytesToEndpoint: 5,
        bytesToClient: 20,
      },
    ])
    const record = records[0] as ConnectionRecord
    expectGrowingTimes(record)
    expect(record.connectedAtMs).toBeGreaterThan(record.pickedAtMs)
    expect(record.endedAtMs).toBeGreaterThan(record.connectedAtMs)
  })

  it('names the endpoint that answered, not the ones that failed before it', async () => {
    const { cluster, records } = await start()
    const server = await pod()
    await cluster.set('web', { ips }, [endpoint(podIp, await deadPort()), endpoint(podIp, server.port)])
    await ask(ip, port)
    await ask(ip, port)
    await until('both records', () => records.length === 2)
    for (const record of records) {
      expect(record.endpoint).toBe(`${podIp}:${server.port}`)
      expect(record.error).toBeUndefined()
      expectGrowingTimes(record)
    }
  })

  it('that reached no endpoint says why, and has none', async () => {
    const { cluster, records, backend } = await start()
    await cluster.set('web', { ips }, [endpoint(podIp, await deadPort())])
    expect(await outcome(ip, port)).toBe('ECONNRESET')
    await until('the client is gone', () => backend.observations.traffic.get(web)?.failures === 1)
    await backend.close()
    expect(records).toMatchObject([
      { servicePort: web, error: 'the endpoints do not answer', bytesToEndpoint: 0, bytesToClient: 0 },
    ])
    expect(records[0]).not.toHaveProperty('endpoint')
    expectGrowingTimes(records[0] as ConnectionRecord)
  })

  it('that was refused at the door says why', async () => {
    const { cluster, records } = await start()
    const server = await pod()
    const loadBalancerIps = { v4: ['127.40.9.2'] }
    const ipFilters = [{ sourceRanges: ['10.9.8.0/24'] }]
    await cluster.set('web', { type: 'LoadBalancer', ips: { loadBalancerIps }, ipFilters }, [
      endpoint(podIp, server.port),
    ])
    expect(await outcome('127.40.9.2', port)).toBe('ECONNRESET')
    await until('the record', () => records.length > 0)
    expect(records).toMatchObject([{ servicePort: web, error: 'the client was refused: source-ranges' }])
    expectGrowingTimes(records[0] as ConnectionRecord)
  })

  it('whose endpoint resets it says so', async () => {
    const { cluster, records } = await start()
    const server = await pod((socket) => void socket.once('data', () => socket.resetAndDestroy()))
    await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    await ask(ip, port, 'hello').catch(() => {})
    await until('the record', () => records.length > 0)
    expect(records).toMatchObject([{ endpoint: `${podIp}:${server.port}`, error: 'endpoint: read ECONNRESET' }])
  })

  it('that is open when the proxy ends is told before close() is over', async () => {
    const { cluster, records, backend } = await start()
    const server = await pod((socket) => void socket.write('hello'))
    await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
    const socket = connect({ host: ip, port })
    socket.on('error', () => {})
    await once(socket, 'data')
    await backend.close()
    expect(records).toMatchObject([{ bytesToClient: 5, error: expect.stringMatching(/^the proxy ended it/) }])
  })
})

describe('a UDP session', () => {
  const ports = [{ name: 'http', protocol: UDP, port, targetPort: port }]
  async function client() {
    const made = await udpClient('127.0.0.1')
    closers.push(() => made.close())
    return made
  }

  it('is told when it falls silent, with its times and bytes', async () => {
    const { cluster, records } = await start({ udpIdleTimeoutMs: 100 })
    const server = await udpServer(podIp, 'pod')
    closers.push(() => server.close())
    await cluster.set('dns', { ips, ports }, [endpoint(podIp, server.port)])
    const one = await client()
    expect(await one.ask(ip, port, 'abc')).toBe('pod:abc')
    expect(await one.ask(ip, port, 'de')).toBe('pod:de')
    expect(records).toEqual([])
    await until('the record', () => records.length > 0)
    expect(records).toMatchObject([
      {
        servicePort: 'default/dns:http',
        client: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        endpoint: `${podIp}:${server.port}`,
        bytesToEndpoint: 5,
        bytesToClient: 13,
      },
    ])
    expect(records[0]).not.toHaveProperty('error')
    expectGrowingTimes(records[0] as ConnectionRecord)
  })

  it('that begins nowhere is told too: refused, or without an endpoint', async () => {
    const { cluster, records } = await start()
    const guarded = { ips: { loadBalancerIps: { v4: [ip] } }, ports, ipFilters: [{ sourceRanges: ['240.0.0.0/8'] }] }
    await cluster.set('dns', guarded as never, [endpoint(podIp, 53)])
    const one = await client()
    expect(await one.ask(ip, port, 'abc', 100)).toBe('silence')
    expect(records.splice(0)).toMatchObject([{ error: 'the client was refused: source-ranges', bytesToEndpoint: 0 }])
    // The only endpoint is the proxy itself.
    await cluster.set('dns', { ips, ports }, [endpoint(ip, port)])
    expect(await one.ask(ip, port, 'abc', 100)).toBe('silence')
    expect(records).toMatchObject([{ client: expect.stringMatching(/^127\.0\.0\.1:/), error: 'there is no endpoint' }])
  })

  it('to an address that no socket can be connected to says why; the proxy goes on', async () => {
    const { cluster, records } = await start()
    // A broadcast address: connecting fails, and nothing leaves the machine.
    await cluster.set('dns', { ips, ports }, [endpoint('127.255.255.255', 53)])
    expect(await (await client()).ask(ip, port, 'abc', 100)).toBe('silence')
    expect(records).toMatchObject([{ error: expect.stringMatching(/^endpoint: connect EACCES/) }])
    expect(records[0]).not.toHaveProperty('endpoint')
  })
})

it('nobody is told once it is unset again', async () => {
  const { cluster, records, backend } = await start()
  const server = await pod()
  await cluster.set('web', { ips }, [endpoint(podIp, server.port)])
  backend.observations.listener = {}
  expect(await ask(ip, port)).toBe('pod')
  await until('its end', () => backend.observations.traffic.get(web)?.active === 0)
  expect(records).toEqual([])
})

it('is unset from the start', () => {
  expect(userspaceBackend().observations.listener).toEqual({})
})
