import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { health } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import { type HealthSource, healthHandlers } from './health.js'
import { Status } from './status.js'
import { connect, startServer, statusOf } from './testing/server.js'

const { HealthCheckRequestSchema, HealthCheckResponseSchema, HealthCheckResponse_ServingStatus: ServingStatus } = health

class Switch implements HealthSource {
  readonly known = new Map<string, 'SERVING' | 'NOT_SERVING'>([['', 'SERVING']])
  readonly listeners = new Set<() => void>()
  status = (service: string) => this.known.get(service)
  onChange = (listener: () => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }
  set(service: string, status: 'SERVING' | 'NOT_SERVING') {
    this.known.set(service, status)
    for (const listener of this.listeners) listener()
  }
}

const asking = (service: string) =>
  Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })))
const statusIn = (message: Buffer | undefined) =>
  ServingStatus[fromBinary(HealthCheckResponseSchema, message ?? Buffer.alloc(0)).status]

async function start() {
  const source = new Switch()
  const server = await startServer(Object.fromEntries(healthHandlers(source)))
  return { source, server, client: connect(server.target) }
}

describe('Check', () => {
  it('tells the status, and NOT_FOUND for a service that is not there', async () => {
    const { source, client } = await start()
    const check = (service: string) => client.unary('/grpc.health.v1.Health/Check', asking(service))
    expect(statusIn(await check(''))).toBe('SERVING')
    source.set('', 'NOT_SERVING')
    expect(statusIn(await check(''))).toBe('NOT_SERVING')
    await expect(check('no.Such')).rejects.toMatchObject({ code: Status.NOT_FOUND })
  })

  it('refuses what is no request', async () => {
    const { client } = await start()
    const check = client.unary('/grpc.health.v1.Health/Check', Buffer.from([0xff, 0xff]))
    await expect(check).rejects.toMatchObject({ code: Status.INVALID_ARGUMENT })
    const empty = client.stream('/grpc.health.v1.Health/Check')
    empty.resume()
    empty.end()
    expect(await statusOf(empty)).toMatchObject({ code: Status.INVALID_ARGUMENT })
  })
})

describe('Watch', () => {
  it('tells each change once, and lets go when the client goes', async () => {
    const { source, client } = await start()
    const call = client.stream('/grpc.health.v1.Health/Watch')
    const told: string[] = []
    call.on('data', (message: Buffer) => told.push(statusIn(message)))
    call.write(asking('localv1.Sets'))
    call.end()
    await until('the first answer', () => told.length === 1)
    source.set('', 'NOT_SERVING')
    source.set('localv1.Sets', 'SERVING')
    await until('the second answer', () => told.length === 2)
    source.set('localv1.Sets', 'SERVING')
    await new Promise((resolve) => setTimeout(resolve, 20))
    source.set('localv1.Sets', 'NOT_SERVING')
    await until('the third answer', () => told.length === 3)
    expect(told).toEqual(['SERVICE_UNKNOWN', 'SERVING', 'NOT_SERVING'])
    expect(source.listeners.size).toBe(1)
    call.cancel()
    await until('nobody listens any more', () => source.listeners.size === 0)
  })
})
