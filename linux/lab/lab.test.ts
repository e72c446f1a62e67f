import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bundleCode, bundledAgent, programPath } from '../testing/bundle.js'
import type { Protocol } from './agent/protocol.js'
import { whyNoSctp } from './agent/sctp.js'
import type { Agent } from './agent.js'
import { addressLines, Lab, type LabPlan, linkLines } from './lab.js'
import { isAlive, makerOf, namespaceName, namespacesOf, sweepLeftovers } from './leftovers.js'
import { whySkipped } from './requirements.js'

const why = whySkipped('labs of network namespaces')
const noSctp = await whyNoSctp()
if (noSctp !== undefined) console.warn(`SKIPPED: SCTP in labs: ${noSctp}`)
const protocols: readonly Protocol[] = noSctp === undefined ? ['TCP', 'UDP', 'SCTP'] : ['TCP', 'UDP']

/** client ── router ── server; in the middle, one subnet and one pair of single addresses. */
const plan = {
  hosts: ['client', 'router', 'server'],
  roles: { router: 'router' },
  links: [
    [
      { host: 'router', device: 'to-client', ips: ['10.70.0.1/24', 'fd70::1/64'] },
      { host: 'client', device: 'eth0', ips: ['10.70.0.2/24', 'fd70::2/64'] },
    ],
    [
      { host: 'router', device: 'to-server', ips: ['172.30.0.1', 'fd30::1'] },
      { host: 'server', device: 'eth0', ips: ['10.244.0.2', 'fd44::2'] },
    ],
  ],
  lines: {
    client: ['route add default via 10.70.0.1 dev eth0', 'route add ::/0 via fd70::1 dev eth0'],
    server: ['route add default via 172.30.0.1 dev eth0 onlink', 'route add ::/0 via fd30::1 dev eth0 onlink'],
  },
} as const satisfies LabPlan<string>

describe('a plan', () => {
  test('becomes links whose ends have their own index and hardware address', () => {
    expect(linkLines(plan.links, (host) => `ns-${host}`)[1]).toBe(
      'link add name to-server index 101 address 02:00:00:00:01:00 netns ns-router type veth peer name eth0 index 201 address 02:00:00:00:01:01 netns ns-server',
    )
  })

  test('gives subnets to some ends, and routes between single addresses to others', () => {
    expect(addressLines(plan.links, 'router')).toEqual([
      'link set lo up',
      'link set to-client up',
      'address add 10.70.0.1/24 dev to-client',
      'address add fd70::1/64 dev to-client nodad',
      'link set to-server up',
      'address add 172.30.0.1/32 dev to-server',
      'address add fd30::1/128 dev to-server nodad',
      'route add 10.244.0.2 dev to-server',
      'neighbour add 10.244.0.2 lladdr 02:00:00:00:01:01 dev to-server nud permanent',
      'route add fd44::2 dev to-server',
      'neighbour add fd44::2 lladdr 02:00:00:00:01:01 dev to-server nud permanent',
    ])
  })
})

test('namespaces of labs are told from those of others', () => {
  expect(makerOf(namespaceName(42, 1, 'node-a'))).toBe(42)
  for (const name of ['kpng-42-node-a', 'kpng-x-1-node-a', 'other-42-1-node-a', 'kpng-bench-42', 'kpng-42-1-a/b']) {
    expect(makerOf(name)).toBeUndefined()
  }
})

test('why there is no SCTP is a sentence', () => {
  expect(noSctp ?? 'this kernel has no SCTP (EPROTONOSUPPORT)').toMatch(
    /^(this kernel has no SCTP \(E|The koffi library)/,
  )
})

test.skipIf(process.platform !== 'linux')(
  'a process that has ended is not alive, even if nobody has waited for it',
  async () => {
    // The shell becomes a `sleep` before its child ends. That one never waits for the child.
    const parent = spawn('sh', ['-c', 'sleep 1 & echo $!; exec sleep 60'])
    onTestFinished(() => void parent.kill('SIGKILL'))
    const [line] = await once(parent.stdout, 'data')
    const pid = Number(String(line))
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, 'utf8'), { timeout: 90_000 }).toContain(') Z ')
    expect(isAlive(pid)).toBe(false)
    expect(isAlive(process.pid)).toBe(true)
  },
)

describe.skipIf(why !== undefined)('a lab', () => {
  test('grows and shrinks while it runs', async () => {
    const growing = await Lab.start<string>({ hosts: ['hub'], roles: { hub: 'router' } })
    try {
      for (const [place, host] of ['one', 'two'].entries()) {
        await growing.add({
          hosts: [host],
          links: [
            [
              { host: 'hub', device: host, ips: ['10.71.0.1'] },
              { host, device: 'eth0', ips: [`10.72.0.${place + 1}`] },
            ],
          ],
          lines: { [host]: ['route add default via 10.71.0.1 dev eth0 onlink'] },
        })
      }
      const [one, two] = [
        await growing.startAgent('one', await bundledAgent()),
        await growing.startAgent('two', await bundledAgent()),
      ]
      const to = { protocol: 'TCP', ip: '10.72.0.2', port: 8080 } as const
      await two.call('serve', [to])
      expect(await one.call('probe', { to, timeoutMs: 5000 })).toMatchObject({ outcome: 'reached', server: 'two' })
      await growing.remove('two')
      expect(await growing.run('hub', 'ip', ['-br', 'link'])).not.toContain('two')
      expect((await namespacesOf(process.pid)).filter((name) => name.endsWith('-two'))).toEqual([])
    } finally {
      await growing.close()
    }
  })
  let lab: Lab<(typeof plan.hosts)[number]>
  let client: Agent
  let server: Agent
  beforeAll(async () => {
    lab = await Lab.start(plan)
    client = await lab.startAgent('client', await bundledAgent())
    server = await lab.startAgent('server', await bundledAgent())
    await server.call(
      'serve',
      protocols.flatMap((protocol) => ['0.0.0.0', '::'].map((ip) => ({ protocol, ip, port: 8080 }))),
    )
  })
  afterAll(async () => {
    await lab?.close()
    expect(await namespacesOf(process.pid)).toEqual([])
  })

  const places = protocols.flatMap((protocol) => ['10.244.0.2', 'fd44::2'].map((ip) => ({ protocol, ip, port: 8080 })))

  test.each(places)('carries $protocol to $ip, through a router', async (to) => {
    const from = to.ip.includes(':') ? 'fd70::2' : '10.70.0.2'
    expect(await client.call('probe', { to, timeoutMs: 5000 })).toEqual({
      ...{ outcome: 'reached', server: 'server', from, port: 8080 },
    })
    expect(await client.call('probe', { to: { ...to, port: 9 }, timeoutMs: 5000 })).toEqual({ outcome: 'refused' })
  })

  test('asks again over the same flow, carries much data, and asks in a loop', async () => {
    for (const to of places) {
      for (let time = 1; time <= 2; time++) {
        const flow = `${to.protocol} ${to.ip}`
        expect(await client.call('probe', { to, timeoutMs: 5000, flow })).toMatchObject({ outcome: 'reached' })
      }
    }
    const [to] = places as [(typeof places)[0]]
    expect(await client.call('probe', { to, timeoutMs: 5000, bytes: 300_000 })).toMatchObject({ outcome: 'reached' })
    await client.call('startLoop', to, 5000)
    await expect.poll(() => client.call('probe', { to, timeoutMs: 5000 })).toMatchObject({ outcome: 'reached' })
    const { asked, failed } = await client.call('endLoop')
    expect(failed).toEqual([])
    expect(asked).toBeGreaterThan(0)
  })

  test('runs programs inside; one that fails says why', async () => {
    expect(await lab.run('server', 'ip', ['-o', 'address', 'show', 'dev', 'eth0'])).toContain('10.244.0.2/32')
    await expect(lab.run('server', 'ip', ['link', 'show', 'eth9'])).rejects.toThrow(/eth9.*does not exist/)
  })

  test('carries connections out of a namespace', async () => {
    const path = join(tmpdir(), `kpng-lab-${process.pid}.sock`)
    const outside = createServer((socket) => socket.end('from outside')).listen(path)
    onTestFinished(() => {
      outside.close()
      rmSync(path, { force: true })
    })
    await server.call('relay', { protocol: 'TCP', ip: '10.244.0.2', port: 7000 }, path)
    const script = `exec 3<>/dev/tcp/10.244.0.2/7000; cat <&3`
    expect(await lab.run('client', 'bash', ['-c', script])).toBe('from outside')
  })

  test('is not disturbed by another one of the same plan', async () => {
    const other = await Lab.start(plan)
    const agent = await other.startAgent('server', await bundledAgent())
    expect(await namespacesOf(process.pid)).toHaveLength(2 * plan.hosts.length)
    await agent.call('serve', [{ protocol: 'TCP', ip: '10.244.0.2', port: 8081 }])
    const to = { protocol: 'TCP', ip: '10.244.0.2', port: 8081 } as const
    expect(await client.call('probe', { to, timeoutMs: 5000 })).toEqual({ outcome: 'refused' })
    await other.close()
    await other.close()
    expect(await namespacesOf(process.pid)).toHaveLength(plan.hosts.length)
    await expect(agent.call('endLoop')).rejects.toThrow('The agent in server ended.')
  })

  test('an agent that cannot do something, or does not start, says why', async () => {
    const taken = server.call('serve', [{ protocol: 'TCP', ip: '10.9.9.9', port: 1 }])
    await expect(taken).rejects.toThrow(/^The agent in server: .*EADDRNOTAVAIL/)
    await expect(lab.startAgent('router', ['sh', '-c', 'echo no such thing >&2; exit 1'])).rejects.toThrow(
      'The agent in router ended: no such thing.',
    )
  })
})

describe.skipIf(why !== undefined)('what a lab leaves', () => {
  const program = programPath('lab')
  beforeAll(() =>
    bundleCode(
      `import { Lab } from './lab.ts'
      const lab = await Lab.start({ hosts: ['a', 'b'] })
      if (process.argv[2] === 'end') process.exit(3)
      const sleeping = lab.run('a', 'sleep', ['1000'], { limitMs: 1000000 })
      console.log(lab.namespaceOf('a'))
      await sleeping`,
      new URL(import.meta.url),
      program,
    ),
  )
  afterAll(() => rmSync(program, { force: true }))

  async function labInProcess(): Promise<ChildProcess & { pid: number }> {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    return child as unknown as ChildProcess & { pid: number }
  }

  /** Not one that has ended and that its new parent has not noticed yet. */
  const runs = (pid: number) => {
    try {
      return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    } catch {
      return false
    }
  }

  const processesIn = (namespace: string) => spawnSync('ip', ['netns', 'pids', namespace]).stdout.toString().trim()

  test('is swept by the next one after a kill, and never while its process lives', async () => {
    const child = await labInProcess()
    const namespace = namespaceName(child.pid, 1, 'a')
    await expect.poll(() => processesIn(namespace)).not.toBe('')
    const orphan = Number(processesIn(namespace).split('\n')[0])
    await sweepLeftovers()
    expect(await namespacesOf(child.pid)).toHaveLength(2)
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(await namespacesOf(child.pid)).toHaveLength(2)
    await sweepLeftovers()
    expect(await namespacesOf(child.pid)).toEqual([])
    await expect.poll(() => runs(orphan)).toBe(false)
  })

  test('is nothing when the process ends by itself', async () => {
    const { status, pid } = spawnSync(process.execPath, [program, 'end'])
    expect(status).toBe(3)
    expect(await namespacesOf(pid)).toEqual([])
  })

  test('is nothing when it cannot be finished', async () => {
    await expect(Lab.start({ hosts: ['a'], lines: { a: ['link set nothing up'] } })).rejects.toThrow(/nothing/)
    expect(await namespacesOf(process.pid)).toEqual([])
  })
})
