import { existsSync, readdirSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../core/testing/until.js'
import { userspaceBackend } from '../backend.js'
import type { UserspaceOptions } from '../options.js'
import { Cluster, endpoint, UDP } from '../testing/cluster.js'
import { recordingLog, type TestServer, udpClient, udpServer } from '../testing/peers.js'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: UserspaceOptions = {}) {
  const backend = userspaceBackend({ allowLoopback: true, syncPeriodMs: 0, ...options })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  return { backend, cluster: new Cluster(backend) }
}

async function pod(name: string, ip = '127.20.0.1'): Promise<TestServer> {
  const server = await udpServer(ip, name)
  closers.push(() => server.close())
  return server
}

async function client(ip = '127.0.0.1') {
  const made = await udpClient(ip)
  closers.push(() => made.close())
  return made
}

const at = ({ port }: TestServer) => endpoint('127.20.0.1', port)
const ports = [{ name: 'http', protocol: UDP, port: 8053, targetPort: 8053 }]
const [ip, port] = ['127.40.0.1', 8053]

describe('UDP on the service address', () => {
  it('keeps a client at its endpoint and spreads clients', async () => {
    const { cluster, backend } = await start()
    await cluster.set('dns', { ports }, [at(await pod('a')), at(await pod('b'))])
    const [one, two] = [await client(), await client()]
    const first = (await one.ask(ip, port, '1')).split(':')[0]
    expect(await one.ask(ip, port, '2')).toBe(`${first}:2`)
    expect((await two.ask(ip, port, '3')).split(':')[0]).not.toBe(first)
    expect(backend.observations.traffic.get('default/dns:http')).toMatchObject({
      connections: 2,
      active: 2,
      bytesToEndpoint: 3,
      bytesToClient: 9,
    })
  })

  it.runIf(existsSync('/proc/self/fd'))(
    'leaves no file open where an address cannot be had, however often',
    async () => {
      const { cluster } = await start()
      const far = { ports, ips: { clusterIps: { v4: ['192.0.2.1'], v6: ['2001:db8::1'] } } }
      const server = await pod('a')
      await cluster.set('dns', far, [at(server)])
      const open = () => readdirSync('/proc/self/fd').length
      const before = open()
      for (let round = 0; round < 20; round++) await cluster.set('dns', { ...far, type: `${round}` }, [at(server)])
      await pause(50)
      expect(open() - before).toBeLessThan(5)
    },
  )

  it('moves a client at once when its endpoint goes', async () => {
    const { cluster } = await start()
    const [a, b] = [await pod('a'), await pod('b')]
    await cluster.set('dns', { ports }, [at(a)])
    const one = await client()
    expect(await one.ask(ip, port, '1')).toBe('a:1')
    await cluster.set('dns', { ports }, [at(b)])
    expect(await one.ask(ip, port, '2')).toBe('b:2')
  })

  it('ends sessions that fall silent', async () => {
    const { cluster, backend } = await start({ udpIdleTimeoutMs: 100 })
    await cluster.set('dns', { ports }, [at(await pod('a'))])
    const one = await client()
    expect(await one.ask(ip, port, '1')).toBe('a:1')
    await until('the session is over', () => backend.observations.traffic.get('default/dns:http')?.active === 0)
    expect(await one.ask(ip, port, '2')).toBe('a:2')
  })

  it('leaves an endpoint where nobody listens for the next one', async () => {
    const { cluster } = await start()
    const dead = await udpServer('127.20.0.1', 'dead')
    await dead.close()
    await cluster.set('dns', { ports }, [at(dead), at(await pod('alive'))])
    const one = await client()
    const answers = []
    for (let i = 0; i < 4; i++) answers.push(await one.ask(ip, port, 'x', 100))
    expect(answers).toContain('alive:x')
    expect(answers.at(-1)).toBe('alive:x')
  })

  it('with affinity, leaves such an endpoint too: the client’s next socket has another one, and stays there', async () => {
    const { cluster } = await start({ clock: { random: () => 0.999 } })
    const dead = await udpServer('127.20.0.1', 'dead')
    await dead.close()
    const sessionAffinity = { case: 'clientIp' as const, value: { timeoutSeconds: 100 } }
    await cluster.set('dns', { ports, sessionAffinity }, [at(dead), at(await pod('alive')), at(await pod('other'))])
    const answers = []
    for (let i = 0; i < 4; i++) answers.push(await (await client()).ask(ip, port, 'x', 100))
    expect(answers).toEqual(['silence', 'alive:x', 'alive:x', 'alive:x'])
  })

  it('serves IPv6', async () => {
    const { cluster } = await start()
    const server = await pod('six', '::1')
    await cluster.set(
      'dns',
      { ips: { clusterIps: { v6: ['::1'] } }, ports: [{ ...ports[0], port: 28_053 }] } as never,
      [endpoint('::1', server.port)],
    )
    expect(await (await client('::1')).ask('::1', 28_053, 'x')).toBe('six:x')
  })

  it('serves each new client, however many there are: the one silent for longest makes room', async () => {
    const { lines, log } = recordingLog()
    const { cluster, backend } = await start({ maxUdpSessions: 2, log })
    await cluster.set('dns', { ports }, [at(await pod('a'))])
    const [one, two, three] = [await client(), await client(), await client()]
    expect(await one.ask(ip, port, '1')).toBe('a:1')
    expect(await two.ask(ip, port, '2')).toBe('a:2')
    expect(await one.ask(ip, port, '3')).toBe('a:3')
    expect(await three.ask(ip, port, '4')).toBe('a:4')
    const counters = () => backend.observations.traffic.get('default/dns:http')
    expect(counters()).toMatchObject({ connections: 3, active: 2, crowdedOut: 1, failures: 0 })
    // The first one was used after the second: it is still there.
    expect(await one.ask(ip, port, '5')).toBe('a:5')
    expect(counters()).toMatchObject({ connections: 3 })
    for (let i = 0; i < 20; i++) expect(await (await client()).ask(ip, port, 'x')).toBe('a:x')
    expect(counters()).toMatchObject({ connections: 23, active: 2, crowdedOut: 21, failures: 0 })
    const warnings = lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
    expect(warnings).toEqual(['Too many UDP clients at a time: those silent for longest make room'])
  })

  it('leaves a client with an endpoint that drains, until that is gone', async () => {
    const { cluster } = await start()
    const [old, young] = [await pod('old'), await pod('young')]
    await cluster.set('dns', { ports }, [at(old)])
    const one = await client()
    expect(await one.ask(ip, port, '1')).toBe('old:1')
    const nowhere = { scopes: { internal: false, external: false, cluster: false } }
    await cluster.set('dns', { ports }, [endpoint('127.20.0.1', old.port, nowhere), at(young)])
    expect(await one.ask(ip, port, '2')).toBe('old:2')
    expect(await (await client()).ask(ip, port, '3')).toBe('young:3')
    await cluster.set('dns', { ports }, [at(young)])
    expect(await one.ask(ip, port, '4')).toBe('young:4')
  })

  it('moves a client when its policy no longer allows its endpoint, though others may use it', async () => {
    const { cluster } = await start()
    const [far, near] = [await pod('far'), await pod('near')]
    await cluster.set('dns', { ports }, [at(far)])
    const one = await client()
    expect(await one.ask(ip, port, '1')).toBe('far:1')
    const elsewhere = { scopes: { internal: false, external: false, cluster: true } }
    await cluster.set('dns', { ports, internalTrafficToLocal: true }, [
      endpoint('127.20.0.1', far.port, elsewhere),
      at(near),
    ])
    expect(await one.ask(ip, port, '2')).toBe('near:2')
  })
})
