import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import '../../cli/testing/compiled.js'
import { addressOf, families, type Host, hosts, podPorts } from '../addresses.js'
import { type Lab, startLab } from './lab.js'
import { makerOf, namespaceName, sweepLeftovers } from './leftovers.js'
import { whyNoLab } from './requirements.js'
import { hostLines, interfaceName, linkLines, links } from './topology.js'

const why = await whyNoLab()
if (why !== undefined) console.warn(`The lab is not tested: ${why}`)

const namespacesOf = async (pid: number) =>
  (await readdir('/run/netns').catch(() => [])).filter((name) => makerOf(name) === pid)

describe('the topology', () => {
  it('gives every host a name, and every link two ends', () => {
    expect(linkLines((host) => `ns-${host}`)).toHaveLength(links.length)
    expect(new Set(links.flatMap(({ near, far }) => [near, far]))).toEqual(new Set(hosts))
    for (const { near, far } of links) expect(interfaceName(near, far).length).toBeLessThanOrEqual(15)
  })

  it('has a default route in each family everywhere', () => {
    for (const host of hosts) {
      expect(hostLines(host).filter((line) => line.startsWith('route add default'))).toHaveLength(families.length)
    }
  })

  it('tells its own namespaces from others', () => {
    expect(makerOf(namespaceName(42, 1, 'node-a'))).toBe(42)
    for (const name of [
      'kpng-42-node-a',
      'kpng-x-1-node-a',
      'kpng-42-1-other',
      'other-42-1-node-a',
      'kpng-42-1-node-a2',
    ]) {
      expect(makerOf(name)).toBeUndefined()
    }
  })
})

describe.skipIf(why !== undefined)('a lab', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab()
  })
  afterAll(async () => {
    await lab?.close()
    expect(await namespacesOf(process.pid)).toEqual([])
  })

  const clients: readonly Host[] = ['pod-a', 'pod-b', 'node-a', 'node-b', 'outside', 'a1', 'b2']
  const servers = ['a1', 'a2', 'b1', 'b2', 'node-a'] as const

  it.each(families)('lets everybody reach every server directly, with the own address, over %s', async (family) => {
    const wrong: string[] = []
    for (const protocol of ['TCP', 'UDP'] as const) {
      for (const client of clients) {
        const asked = servers.map(async (server) => {
          const to = { protocol, ip: addressOf[server][family], port: podPorts[0] }
          const seen = await lab.agents[client].probe({ to, timeoutMs: 2000 })
          const expected = { outcome: 'reached', server, from: addressOf[client][family], port: podPorts[0] }
          if (JSON.stringify(seen) !== JSON.stringify(expected))
            wrong.push(`${client} ${server} ${JSON.stringify(seen)}`)
        })
        await Promise.all(asked)
      }
    }
    expect(wrong).toEqual([])
  })

  it.each(families)('tells refused from dropped over %s', async (family) => {
    for (const protocol of ['TCP', 'UDP'] as const) {
      const ask = (ip: string, port: number) =>
        lab.agents['pod-a'].probe({ to: { protocol, ip, port }, timeoutMs: 700 })
      expect(await ask(addressOf.b1[family], 9)).toEqual({ outcome: 'refused' })
      // The gateway has no route for this one, and says nothing since it does not forward.
      expect(await ask({ v4: '198.18.0.1', v6: '2001:db8:ffff::1' }[family], 80)).toEqual({ outcome: 'dropped' })
    }
  })

  it('asks again over the same flow', async () => {
    const to = { protocol: 'UDP', ip: addressOf.b1.v4, port: podPorts[0] } as const
    const tcp = { ...to, protocol: 'TCP' } as const
    for (const place of [to, tcp, to, tcp]) {
      const seen = await lab.agents['pod-a'].probe({ to: place, timeoutMs: 1000, flow: place.protocol })
      expect(seen).toMatchObject({ outcome: 'reached', server: 'b1' })
    }
  })
})

describe.skipIf(why !== undefined)('what a lab leaves', () => {
  const program = fileURLToPath(new URL('../dist/lab/lab.js', import.meta.url))
  const script = `import { startLab } from ${JSON.stringify(program)}; await startLab(); console.log('up'); setInterval(() => {}, 1000)`

  async function labInProcess() {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    return child
  }

  it('is swept by the next one after a kill', async () => {
    const child = await labInProcess()
    const { pid } = child as { pid: number }
    expect(await namespacesOf(pid)).toHaveLength(hosts.length)
    await sweepLeftovers()
    expect(await namespacesOf(pid)).toHaveLength(hosts.length)
    // A proxy under test would live on, so something must be there to be ended.
    const orphan = spawn('ip', ['netns', 'exec', namespaceName(pid, 1, 'node-a'), 'sleep', '1000'], { stdio: 'ignore' })
    child.kill('SIGKILL')
    await once(child, 'close')
    await new Promise((resolve) => setTimeout(resolve, 100))
    const orphanEnded = once(orphan, 'close')
    await sweepLeftovers()
    expect(await namespacesOf(pid)).toEqual([])
    await orphanEnded
  })

  it('is nothing when the process ends by itself', async () => {
    const ended = spawnSync(process.execPath, ['--input-type=module', '-e', `${script}; process.exit(3)`])
    expect(ended.status).toBe(3)
    expect(await namespacesOf(ended.pid)).toEqual([])
  })
})
