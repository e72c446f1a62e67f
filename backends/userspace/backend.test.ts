import { KpngError } from '@kpng/api'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../core/testing/until.js'
import { userspaceBackend } from './backend.js'
import { noCapture } from './capture/none.js'
import type { UserspaceOptions } from './options.js'
import { Cluster, endpoint, everywhere, SCTP, service, TCP, UDP } from './testing/cluster.js'
import { fakeCapture } from './testing/fake-capture.js'
import { outcome, recordingLog, tcpServer } from './testing/peers.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: UserspaceOptions = {}) {
  const { lines, log } = recordingLog()
  const backend = userspaceBackend({ log, allowLoopback: true, syncPeriodMs: 0, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  return { backend, lines, cluster: new Cluster(backend) }
}

async function pod(name: string) {
  const server = await tcpServer('127.20.0.1', name)
  closers.push(() => server.close())
  return endpoint('127.20.0.1', server.port)
}

const ips = (ip: string) => ({ clusterIps: { v4: [ip] } })
const port = { name: 'http', protocol: TCP, port: 8080, targetPort: 8080 }

describe('one service does not disturb another', () => {
  it('a port in use is told once, and opened when it is free', async () => {
    const other = await tcpServer('127.11.0.1', 'other program', { port: 8080 })
    const { cluster, backend, lines } = await start()
    const endpoints = [await pod('a')]
    await cluster.set('taken', { ips: ips('127.11.0.1') }, endpoints)
    await cluster.set('good', { ips: ips('127.11.0.2') }, endpoints)
    await cluster.set(
      'good',
      { ips: ips('127.11.0.2'), ports: [port, { ...port, name: 'more', port: 8081 }] },
      endpoints,
    )
    const message = '127.11.0.1:8080/tcp is in use by another program; stop it, or give the service another port.'
    expect([...backend.observations.failures().values()]).toEqual([message])
    expect(lines.filter(({ level }) => level === 'error').map(({ fields }) => fields.error)).toEqual([message])
    expect(await outcome('127.11.0.2', 8080)).toBe('a')
    await other.close()
    await cluster.set('good', { ips: ips('127.11.0.2') }, endpoints)
    expect(await outcome('127.11.0.1', 8080)).toBe('a')
  })

  it('two services with one address: the first by name has it, the second when the first is gone', async () => {
    const { cluster, backend, lines } = await start()
    const [a, b] = [await pod('a'), await pod('b')]
    await cluster.set('two', { ips: ips('127.11.0.3') }, [b])
    expect(await outcome('127.11.0.3', 8080)).toBe('b')
    await cluster.set('one', { ips: ips('127.11.0.3') }, [a])
    expect(lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).toEqual([
      { service: 'default/two', reason: '127.11.0.3:8080/tcp belongs to Service default/one' },
    ])
    expect(backend.observations.failures().size).toBe(0)
    expect(await outcome('127.11.0.3', 8080)).toBe('a')
    await cluster.set('one', undefined)
    expect(await outcome('127.11.0.3', 8080)).toBe('b')
  })

  it.each(['before', 'after'])('nobody’s external IP takes a cluster IP, be it wanted %s the owner', async (when) => {
    const { cluster, lines } = await start()
    const [thief, owner] = [await pod('thief'), await pod('owner')]
    const steal = () =>
      cluster.set('thief', { ips: { ...ips('127.11.0.6'), externalIps: { v4: ['127.11.0.7'] } } }, [thief])
    if (when === 'before') await steal()
    await cluster.set('owner', { ips: ips('127.11.0.7') }, [owner])
    if (when === 'after') await steal()
    expect(await outcome('127.11.0.7', 8080)).toBe('owner')
    expect(await outcome('127.11.0.6', 8080)).toBe('thief')
    expect(lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).toEqual([
      { service: 'default/thief', reason: '127.11.0.7:8080/tcp belongs to Service default/owner' },
    ])
    // Nor while the owner has no endpoints.
    await cluster.set('owner', { ips: ips('127.11.0.7') }, [])
    expect(await outcome('127.11.0.7', 8080)).toBe('ECONNREFUSED')
    await cluster.set('owner', undefined)
    expect(await outcome('127.11.0.7', 8080)).toBe('thief')
  })

  it('external IPs can be switched off', async () => {
    const { cluster } = await start({ externalIps: false })
    const both = { ...ips('127.11.0.8'), externalIps: { v4: ['127.11.0.9'] } }
    await cluster.set('web', { ips: both }, [await pod('a')])
    expect(await outcome('127.11.0.8', 8080)).toBe('a')
    expect(await outcome('127.11.0.9', 8080)).toBe('ECONNREFUSED')
  })

  it('an address that is not this machine’s is told', async () => {
    const { cluster, backend } = await start()
    await cluster.set('far', { ips: ips('192.0.2.1') }, [await pod('a')])
    expect([...backend.observations.failures().values()]).toEqual([
      '192.0.2.1:8080/tcp is not an address of this machine; add it to an interface, or choose a capture that does.',
    ])
  })

  it('a failed portal is tried again by the periodic sync', async () => {
    const other = await tcpServer('127.11.0.4', 'other program', { port: 8080 })
    const { cluster, backend } = await start({ syncPeriodMs: 50 })
    await cluster.set('web', { ips: ips('127.11.0.4') }, [await pod('a')])
    expect(backend.observations.failures().size).toBe(1)
    await other.close()
    await until('the portal is open', () => backend.observations.failures().size === 0)
    expect(await outcome('127.11.0.4', 8080)).toBe('a')
  })

  it('a full sync closes what the view does not have', async () => {
    const { cluster, backend } = await start()
    await cluster.set('web', { ips: ips('127.11.0.5') }, [await pod('a')])
    cluster.services.clear()
    await cluster.fullSync()
    expect(await outcome('127.11.0.5', 8080)).toBe('ECONNREFUSED')
    expect(backend.observations.traffic.size).toBe(0)
  })
})

describe('who may go where', () => {
  it('decides by the client: inside takes the cluster scope, outside the external one', async () => {
    const { cluster } = await start()
    const [here, there] = [await pod('here'), await pod('there')]
    there.scopes = { ...everywhere, external: false, $typeName: 'localv1.EndpointScopes' }
    here.scopes = { internal: false, external: true, cluster: false, $typeName: 'localv1.EndpointScopes' }
    const both = { clusterIps: { v4: ['127.11.1.1'] }, externalIps: { v4: ['127.11.1.2'] } }
    await cluster.set('web', { ips: both, externalTrafficToLocal: true }, [here, there])
    // Every loopback address is this node's own.
    expect(await outcome('127.11.1.1', 8080)).toBe('there')
    expect(await outcome('127.11.1.2', 8080)).toBe('there')
  })

  it('source ranges are checked on accept, on load-balancer IPs only', async () => {
    const { cluster, backend } = await start()
    const set = async (...sourceRanges: string[]) =>
      cluster.set(
        'lb',
        { ips: { ...ips('127.11.1.3'), loadBalancerIps: { v4: ['127.11.1.4'] } }, ipFilters: [{ sourceRanges }] },
        [await pod('a')],
      )
    await set('127.0.0.7/32')
    expect(await outcome('127.11.1.4', 8080, '127.0.0.7')).toBe('a')
    expect(await outcome('127.11.1.4', 8080, '127.0.0.8')).toBe('ECONNRESET')
    expect(await outcome('127.11.1.3', 8080, '127.0.0.8')).toBe('a')
    expect(backend.observations.traffic.get('default/lb:http')?.refused).toBe(1)
    await set('127.0.0.8/32')
    expect(await outcome('127.11.1.4', 8080, '127.0.0.8')).toBe('a')
  })

  it('the node being in the ranges lets its own virtual IP in', async () => {
    const { cluster } = await start()
    await cluster.setNode({ addresses: ['10.9.8.7'] })
    const init = { ips: { loadBalancerIps: { v4: ['127.11.1.5'] } }, ipFilters: [{ sourceRanges: ['10.9.8.0/24'] }] }
    await cluster.set('lb', init, [await pod('a')])
    expect(await outcome('127.11.1.5', 8080, '127.11.1.5')).toBe('a')
  })

  it('never connects to loopback unless it is told to, nor to itself in any case', async () => {
    const strict = await start({ allowLoopback: false })
    await strict.cluster.set('web', { ips: ips('127.11.1.6') }, [await pod('a'), endpoint('169.254.169.254')])
    expect(await outcome('127.11.1.6', 8080)).toBe('ECONNREFUSED')
    expect(strict.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.reason)).toEqual([
      'endpoint 127.20.0.1 is not used because it is a loopback address',
      'endpoint 169.254.169.254 is not used because it is a link-local address',
    ])
    const { cluster, lines } = await start({ nodePortAddresses: ['localhost'] })
    await cluster.set('loop', { ips: ips('127.11.1.7') }, [endpoint('127.11.1.7')])
    expect(await outcome('127.11.1.7', 8080)).toBe('ECONNRESET')
    await cluster.set('loop', { ips: ips('127.11.1.7') }, [endpoint('127.11.1.7'), await pod('a')])
    for (let i = 0; i < 4; i++) expect(await outcome('127.11.1.7', 8080)).toBe('a')
    await cluster.set('np', { ips: ips('127.11.1.8'), ports: [{ ...port, nodePort: 30_913 }] }, [
      endpoint('127.0.0.1', 30_913),
    ])
    expect(await outcome('127.0.0.1', 30_913)).toBe('ECONNRESET')
    expect(lines.some(({ message }) => message.startsWith('An endpoint is this proxy itself'))).toBe(true)
  })
})

describe('what the capture is told', () => {
  it('one changed service is one changed portal; endpoints alone are none', async () => {
    const { capture, taken } = fakeCapture()
    const { cluster } = await start({ capture })
    const many = Array.from({ length: 20 }, (_, i) => i)
    for (const i of many) await cluster.set(`s${i}`, { ips: ips(`10.96.0.${i}`) }, [endpoint('10.1.0.1')])
    taken()
    await cluster.set('s7', { ips: ips('10.96.0.7') }, [endpoint('10.1.0.2')])
    expect(taken()).toEqual([])
    await cluster.set('s7', { ips: ips('10.96.0.7') }, [])
    const [steering, ...more] = taken()
    expect(more).toEqual([])
    expect([steering?.added.length, steering?.removed.length, steering?.open.length]).toEqual([1, 1, 20])
    expect(steering?.added[0]?.place).toEqual(steering?.removed[0]?.place)
  })

  it('an address goes from an external IP to its owner in one step, and back', async () => {
    const { capture, stepByStep, atOnce } = fakeCapture()
    const { cluster } = await start({ capture })
    const owners = () => stepByStep().map((line) => line.split(':http')[0])
    await cluster.set('thief', { ips: { externalIps: { v4: ['10.96.0.1'] } } } as never, [endpoint('10.1.0.1')])
    expect(owners()).toEqual(['default/thief'])
    await cluster.set('owner', { ips: ips('10.96.0.1') }, [endpoint('10.1.0.2')])
    expect(owners()).toEqual(['default/owner'])
    await cluster.set('owner', undefined)
    expect(owners()).toEqual(['default/thief'])
    expect(stepByStep()).toEqual(atOnce())
  })

  it('a steering that fails is retried with everything', async () => {
    const { capture, fail, stepByStep, atOnce } = fakeCapture()
    const { cluster } = await start({ capture })
    await cluster.set('a', { ips: ips('10.96.0.1') }, [endpoint('10.1.0.1')])
    fail(new Error('nft is busy'))
    await expect(cluster.set('a', undefined)).rejects.toThrow('nft is busy')
    await expect(cluster.set('b', { ips: ips('10.96.0.2') }, [])).rejects.toThrow('nft is busy')
    fail(undefined)
    await cluster.fullSync()
    expect(stepByStep()).toEqual(atOnce())
    expect(stepByStep()).toHaveLength(1)
  })

  it('step by step is the same as at once, whatever happens', { timeout: 300_000 }, async () => {
    const change = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      ip: fc.constantFrom('10.96.0.1', '10.96.0.2', 'fd96::1'),
      protocol: fc.constantFrom(TCP, UDP),
      nodePort: fc.constantFrom(0, 30_001),
      ready: fc.boolean(),
      local: fc.boolean(),
      guarded: fc.boolean(),
      exists: fc.boolean(),
      fails: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
        const { capture, fail, stepByStep, atOnce } = fakeCapture()
        const backend = userspaceBackend({ capture, syncPeriodMs: 0 })
        await backend.setup({ requestFullSync: () => {} })
        const cluster = new Cluster(backend)
        for (const { name, ip, protocol, nodePort, ready, local, guarded, exists, fails } of changes) {
          const set = ip.includes(':') ? { v6: [ip] } : { v4: [ip] }
          const init = {
            ips: { clusterIps: set, loadBalancerIps: { v4: ['198.51.100.1'] } },
            ports: [{ ...port, protocol, nodePort }],
            externalTrafficToLocal: local,
            ipFilters: guarded ? [{ sourceRanges: ['10.0.0.0/8'] }] : [],
          }
          fail(fails ? new Error('no') : undefined)
          const done = cluster.set(
            name,
            exists ? init : undefined,
            ready ? [endpoint('10.1.0.1'), endpoint('fd01::1')] : [],
          )
          const failed = await done.then(
            () => false,
            () => true,
          )
          fail(undefined)
          // The runner's part of the contract.
          if (failed) await cluster.fullSync()
          expect(stepByStep()).toEqual(atOnce())
        }
        const before = stepByStep().map((line) => line.replace(/→ \d+/, ''))
        await cluster.fullSync()
        expect(stepByStep().map((line) => line.replace(/→ \d+/, ''))).toEqual(before)
        await backend.close()
      }),
      { numRuns: 60 },
    )
  })
})

it('a backend that failed to set up takes nothing away when it is closed', async () => {
  const calls: string[] = []
  const capture = {
    ...noCapture(),
    setup: () => Promise.reject(new KpngError('unsupported', 'Operation not permitted')),
    cleanup: async () => void calls.push('cleanup'),
  }
  const backend = userspaceBackend({ capture })
  await expect(backend.setup({ requestFullSync: () => {} })).rejects.toThrow('Operation not permitted')
  await backend.close()
  expect(calls).toEqual([])
})

describe('options', () => {
  it.each([
    [{ drainSeconds: -1 }, 'The option drainSeconds of the userspace backend is -1; give a number of at least 0.'],
    [{ udpIdleTimeoutMs: Number.NaN }, 'The option udpIdleTimeoutMs'],
    [{ dialTimeoutsMs: [] }, 'The option dialTimeoutsMs'],
    [{ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.0.0.0'] } }, '"10.0.0.0" in detectLocal.cidrs is not a CIDR'],
  ] as const)('%j', (options, message) => expect(() => userspaceBackend(options)).toThrow(message))
})

describe('node ports without a capture', () => {
  const listening = async (...nodePortAddresses: string[]) => {
    const started = await start({ nodePortAddresses })
    await started.cluster.set('np', { ips: ips('127.11.2.1'), ports: [{ ...port, nodePort: 30_915 }] }, [
      await pod('a'),
    ])
    return started
  }

  it('listen on the addresses that nodePortAddresses selects, and on no other', async () => {
    const { cluster } = await listening('localhost')
    expect(await outcome('127.0.0.1', 30_915)).toBe('a')
    expect(await outcome('127.0.0.2', 30_915)).toBe('ECONNREFUSED')
    await cluster.set('np', undefined)
    expect(await outcome('127.0.0.1', 30_915)).toBe('ECONNREFUSED')
  })

  it('listen on every address if all serve node ports', async () => {
    await listening('all')
    expect(await outcome('127.0.0.2', 30_915)).toBe('a')
  })

  it("move when the node's primary address does", async () => {
    const { cluster, backend } = await listening('primary')
    await cluster.setNode({ addresses: ['192.0.2.1'] })
    expect(await outcome('127.0.0.1', 30_915)).toBe('ECONNREFUSED')
    expect(backend.observations.failures().size).toBe(0)
    await cluster.setNode({ addresses: ['127.0.0.1'] })
    expect(await outcome('127.0.0.1', 30_915)).toBe('a')
  })
})

describe('what others may ask', () => {
  it('what it can do', async () => {
    expect((await start()).backend.features()).toMatchObject({
      name: 'userspace',
      protocols: ['tcp', 'udp'],
      families: ['IPv4', 'IPv6'],
      keepsSourceAddress: false,
    })
  })

  it('what it holds for a frontend: endpoints, session affinity, connections', async () => {
    const { cluster, backend } = await start()
    const [here, there] = [await pod('here'), await pod('there')]
    there.scopes = { ...everywhere, external: false, $typeName: 'localv1.EndpointScopes' }
    const sessionAffinity = { case: 'clientIp' as const, value: { timeoutSeconds: 100 } }
    const both = { clusterIps: { v4: ['127.11.2.2'] }, externalIps: { v4: ['127.11.2.3'] } }
    await cluster.set('web', { ips: both, externalTrafficToLocal: true, sessionAffinity }, [here, there])
    const address = { kind: 'externalIP', family: 'IPv4', address: '127.11.2.3', protocol: 'tcp', port: 8080 } as const
    const key = (pod: typeof here) => `127.20.0.1:${pod.portOverrides[0]?.port}`
    expect(await backend.held(address)).toMatchObject({ connections: 0, sessionAffinity: [], otherwise: 'drop' })
    const answer = await outcome('127.11.2.3', 8080, '127.0.0.9')
    const held = await backend.held(address)
    expect([...(held?.inside ?? [])].sort()).toEqual([key(here), key(there)].sort())
    expect(held).toMatchObject({
      outside: [key(here)],
      connections: 1,
      sessionAffinity: [{ client: '127.0.0.9', endpoint: key(answer === 'here' ? here : there) }],
    })
    expect(await backend.held({ ...address, port: 8081 })).toBeUndefined()
    expect(backend.frontends.get('127.11.2.3:8080/tcp')?.service).toBe('default/web')
    await cluster.set('web', { ips: both, externalTrafficToLocal: true, sessionAffinity }, [])
    expect(await backend.held(address)).toEqual({ inside: [], outside: [], otherwise: 'refuse' })
  })
})

it('what a process cannot serve is reported once per Service, and the rest goes on', async () => {
  const { cluster, lines } = await start()
  const sctp = { ...port, name: 'sctp', protocol: SCTP, port: 9999 }
  for (const targetPort of [1, 2]) {
    await cluster.set('web', { ips: ips('127.11.2.4'), ports: [port, { ...sctp, targetPort }] }, [await pod('a')])
  }
  await cluster.set('whole', { ips: ips('127.11.2.5'), ports: [], mapIp: true }, [await pod('b')])
  expect(lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).toEqual([
    { service: 'default/web', reason: 'the userspace proxy does not support SCTP' },
    { service: 'default/whole', reason: 'the userspace proxy does not support whole addresses' },
  ])
  expect(lines.some(({ level }) => level === 'error')).toBe(false)
  expect(await outcome('127.11.2.4', 8080)).toBe('a')
})

it('a service without ports, or without addresses, is nothing to do', async () => {
  const { cluster, backend } = await start()
  await cluster.set('none', { ports: [] })
  await cluster.set('headless', { ips: {} } as never)
  expect(service('x').ports).toHaveLength(1)
  expect(backend.observations.failures().size).toBe(0)
})
