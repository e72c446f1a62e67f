import { spawnSync } from 'node:child_process'
import { Tables } from '@kpng/linux/nftables'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { change, endpoint, fullSync, ips, type TestService, view } from '../../dataplane/testing/objects.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { heldIn, nft, RunningBackends } from './testing/running.js'

const sticky = (name: string, address: string, seconds: number, endpoints: readonly string[]): TestService => ({
  name,
  sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: seconds } },
  ips: { clusterIps: ips(address) },
  endpoints: endpoints.map((endpointAddress) => endpoint(endpointAddress)),
})

/** As packets would: so many clients of a service at an endpoint. */
function remember(clients: number, service: string, endpointAddress: string): void {
  const elements = Array.from({ length: clients }, (_, index) => {
    const client = `100.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
    return `${client} . ${service} . tcp . 80 timeout 3h : ${endpointAddress} . 8080`
  })
  const input = `add element ip kpng affinity { ${elements.join(', ')} }\n`
  const { stderr } = spawnSync('nft', ['-f', '-'], { input, encoding: 'utf8' })
  expect(stderr).toBe('')
}

describe.skipIf(whyNoKernel() !== undefined)('clients that are remembered', () => {
  const backends = new RunningBackends()
  beforeAll(() => enterNewNamespace())
  afterEach(() => backends.end())

  test('no sync waits until they have been looked through (39, 65)', async () => {
    const small = (...endpoints: string[]) => sticky('small', '10.96.0.2', 10_800, endpoints)
    const of = view([small('10.0.1.1', '10.0.1.2')])
    const backend = await backends.start({ ipv6: false, driftCheckIntervalMs: 0 })
    await backend.sync(of, fullSync)
    remember(3, '10.96.0.2', '10.0.1.2')
    const read = Tables.prototype.readBeside
    let goOn = () => {}
    const looking = vi.spyOn(Tables.prototype, 'readBeside').mockImplementation(async function (this: Tables, path) {
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      return await read.call(this, path)
    })
    await backend.sync(of, change(of, 'small', small('10.0.1.1')))
    await backend.sync(of, change(of, 'small', small('10.0.1.1', '10.0.1.3')))
    expect(nft('get', 'element', 'ip', 'kpng', 'endpoints', '{ 10.96.0.2 . tcp . 80 . 1 }')).toContain('10.0.1.3')
    expect((await heldIn('ip affinity')).size).toBe(3)
    looking.mockRestore()
    goOn()
    await expect.poll(async () => (await heldIn('ip affinity')).size, { timeout: 90_000 }).toBe(0)
  })

  test('by an endpoint with thousands of them are all released, also those that come late (39)', async () => {
    const service = (...endpoints: string[]) => sticky('big', '10.96.0.1', 10_800, endpoints)
    const of = view([service('10.0.0.1', '10.0.0.2')])
    const backend = await backends.start({ ipv6: false, driftCheckIntervalMs: 0 })
    await backend.sync(of, fullSync)
    remember(5000, '10.96.0.1', '10.0.0.1')
    await backend.sync(of, change(of, 'big', service('10.0.0.2')))
    await vi.waitFor(async () => expect((await heldIn('ip affinity')).size).toBe(0), { timeout: 90_000 })
    // A packet that was on its way.
    remember(1, '10.96.0.1', '10.0.0.1')
    await vi.waitFor(async () => expect((await heldIn('ip affinity')).size).toBe(0), { timeout: 90_000 })
  })

  test('the chains of times that no service has go with a full sync', async () => {
    const of = view([sticky('other', '10.96.0.9', 60, ['10.0.0.9'])])
    const backend = await backends.start({ ipv6: false })
    await backend.sync(of, fullSync)
    for (let seconds = 1; seconds <= 5; seconds++) {
      await backend.sync(of, change(of, 's', sticky('s', '10.96.0.1', seconds, ['10.0.0.1'])))
    }
    await backend.sync(of, change(of, 's', undefined))
    const chains = () => nft('list', 'table', 'ip', 'kpng').match(/chain remember-\d+/g)
    expect(chains()).toHaveLength(6)
    await backend.sync(of, fullSync)
    expect(chains()).toEqual(['chain remember-60'])
    await backend.sync(of, change(of, 's', sticky('s', '10.96.0.1', 3, ['10.0.0.1'])))
    expect(chains()).toEqual(['chain remember-60', 'chain remember-3'])
  })
})
