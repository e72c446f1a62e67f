import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { connect, createServer, type Socket } from 'node:net'
import { type Log, silentLog } from '@kpng/api'
import { change, endpoint, fullSync, ips, type TestService, tcp, view } from '../../../dataplane/testing/objects.js'
import { ipvsBackend } from '../backend.js'
import { Ipvs } from '../ipvs-netlink.js'
import { readTable, tableNames } from '../nft.js'
import type { IpvsOptions } from '../options.js'
import { type Checks, runChecks } from './checks.js'

// What the backend does in a kernel that has IPVS. A program of its own: it must run in a network namespace of its own, with all its
// threads (unshare --net), and in the VM a small program starts much sooner than a test runner. Prints a line per check.

const options: IpvsOptions = {
  ...{ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] }, nodePortAddresses: ['all'], ipv6: 'auto' },
  ...{ drainCheckIntervalMs: 200, driftCheckIntervalMs: 0 },
}

const pods = ['10.244.1.1', '10.244.1.2', '10.244.1.3']
const web = (more: Partial<TestService> = {}): TestService => ({
  ...{ name: 'web', ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') }, ports: [tcp(80, { nodePort: 30_080 })] },
  endpoints: pods.slice(0, 2).map((ip) => endpoint(ip, { local: true })),
  ...more,
})

const ip = (...words: string[]) => assert.equal(spawnSync('ip', words, { encoding: 'utf8' }).stderr, '')

/** Waits for something that becomes true by itself. */
async function until(what: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await isTrue()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`Waited in vain until ${what}.`)
}

/** Those that a failed check left open. */
const opened = new Set<ReturnType<typeof ipvsBackend>>()

/** A backend that serves `web`. */
async function serving(given: IpvsOptions = {}, service = web()) {
  const reasons: string[] = []
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (message) => void warnings.push(message) }
  const backend = ipvsBackend({ ...options, log, ...given })
  opened.add(backend)
  const state = view([service], ['10.96.0.0/16'])
  await backend.setup({ requestFullSync: (reason) => void reasons.push(reason) })
  await backend.sync(state, fullSync)
  return {
    backend,
    state,
    reasons,
    warnings,
    apply: (after: TestService | undefined) => backend.sync(state, change(state, 'web', after)),
  }
}

const destinationsAt = async (address: string) => {
  const server = (await ipvs.servers()).find((each) => each.address === address)
  const found = server ? await ipvs.destinations(server) : []
  return found.map(({ ip: to, port, weight }) => `${to}:${port} ${weight}`).sort()
}

/** Without the counters: the kernel adds them up late. */
const serversText = async (): Promise<string> =>
  JSON.stringify((await ipvs.servers()).map((server) => ({ ...server, connections: 0 })))

/** Which pod answers: it says its own address. */
function call(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: 20_000 })
    let said = ''
    socket.on('data', (chunk) => {
      said += chunk
    })
    socket.on('end', () => resolve(said))
    socket.on('timeout', () => reject(new Error(`${host}:${port} does not answer`)))
    socket.on('error', reject)
  })
}

const held = new Set<Socket>()

async function startPods(): Promise<void> {
  ip('link', 'set', 'lo', 'up')
  ip('link', 'add', 'eth9', 'type', 'dummy')
  ip('address', 'add', '172.30.0.1/24', 'dev', 'eth9')
  ip('link', 'set', 'eth9', 'up')
  for (const pod of pods) {
    ip('address', 'add', `${pod}/32`, 'dev', 'lo')
    // On port 8081 it answers and keeps the connection.
    await new Promise<void>((resolve) => createServer((socket) => void socket.end(pod)).listen(8080, pod, resolve))
    const keep = (socket: Socket) => {
      held.add(socket)
      socket.on('error', () => {})
      socket.on('data', (chunk) => void socket.write(chunk))
      socket.write(pod)
    }
    await new Promise<void>((resolve) => createServer(keep).listen(8081, pod, resolve))
  }
}

const checks: Checks = {
  'serves cluster IPs and node ports, and tells what it holds': async () => {
    const { backend, warnings } = await serving()
    assert.deepEqual(warnings, [])
    assert.deepEqual(await destinationsAt('10.96.0.1'), ['10.244.1.1:8080 1', '10.244.1.2:8080 1'])
    assert.deepEqual(await destinationsAt('172.30.0.1'), ['10.244.1.1:8080 1', '10.244.1.2:8080 1'])
    const answers = [await call('10.96.0.1', 80), await call('10.96.0.1', 80), await call('172.30.0.1', 30_080)]
    assert.deepEqual([...new Set(answers)].sort(), pods.slice(0, 2))
    await assert.rejects(call('10.96.0.1', 81), /ECONNREFUSED/)
    const frontend = { kind: 'clusterIP', family: 'IPv4', address: '10.96.0.1', protocol: 'tcp', port: 80 } as const
    const found = await backend.held?.(frontend)
    assert.deepEqual([...(found?.inside ?? [])].sort(), ['10.244.1.1:8080', '10.244.1.2:8080'])
    assert.deepEqual(found?.outside, found?.inside)
    assert.equal(found?.otherwise, 'refuse')
    assert.equal(await backend.held?.({ ...frontend, port: 81 }), undefined)
    await backend.close()
  },

  'a restart changes nothing, and takes what went away meanwhile': async () => {
    const before = await serversText()
    const { backend, state } = await serving()
    assert.equal(await serversText(), before)
    await backend.close()
    const again = ipvsBackend(options)
    await again.setup({ requestFullSync: () => {} })
    assert.equal(await again.hasRules?.(), true)
    state.services.clear()
    await again.sync(state, fullSync)
    assert.deepEqual(await ipvs.servers(), [])
    await again.close()
  },

  'an endpoint that is gone keeps its connections, and goes when they have ended': async () => {
    const ports = [tcp(80, { targetPort: 8081 })]
    const { backend, apply } = await serving({}, web({ ports, endpoints: [endpoint(pods[0] ?? '', { local: true })] }))
    const socket = connect({ host: '10.96.0.1', port: 80 })
    const heard: string[] = []
    socket.on('data', (chunk) => void heard.push(String(chunk)))
    await until('the pod answers', () => heard.join('') === pods[0])
    await apply(web({ ports, endpoints: [endpoint(pods[1] ?? '', { local: true })] }))
    assert.deepEqual(await destinationsAt('10.96.0.1'), ['10.244.1.1:8081 0', '10.244.1.2:8081 1'])
    socket.write('more')
    await until('the old connection goes on', () => heard.join('') === `${pods[0]}more`)
    socket.destroy()
    for (const each of held) each.destroy()
    // Closed connections are remembered for a while.
    await ipvs.setTimeouts({ tcp: 900, tcpFin: 1, udp: 0 })
    await backend.close()
    const limited = await serving(
      { drainLimitMs: 300 },
      web({ ports, endpoints: [endpoint(pods[1] ?? '', { local: true })] }),
    )
    await until('it is removed', async () => (await destinationsAt('10.96.0.1')).join() === '10.244.1.2:8081 1')
    await limited.backend.close()
  },

  'what others change is noticed and repaired': async () => {
    const { backend, state, reasons } = await serving({ driftCheckIntervalMs: 50 })
    const server = (await ipvs.servers()).find(({ key }) => key === '10.96.0.1:80/tcp')
    assert.ok(server)
    const [destination] = await ipvs.destinations(server)
    assert.ok(destination)
    const flush = ['delete', 'element', 'ip', 'kpng-ipvs', 'addresses', '{ 10.96.0.1 }']
    const damages = [
      () => ipvs.change([{ do: 'deleteDest', server, destination }]),
      async () => {
        await ipvs.change([{ do: 'deleteService', server }])
        ip('address', 'del', '10.96.0.1/32', 'dev', 'kube-ipvs0')
        assert.equal(spawnSync('nft', flush).status, 0)
      },
    ]
    for (const damage of damages) {
      reasons.length = 0
      await damage()
      await until('it is noticed', () => reasons.length > 0)
      await backend.sync(state, fullSync)
    }
    assert.deepEqual(await destinationsAt('10.96.0.1'), ['10.244.1.1:8080 1', '10.244.1.2:8080 1'])
    assert.ok(await call('10.96.0.1', 80))
    assert.ok((await readTable('IPv4', 'kpng-ipvs'))?.sets.get('addresses')?.has('10.96.0.1'))
    await backend.close()
  },

  'a Service that changes hands between two kpngs is always served afterwards': async () => {
    const main = await serving()
    const special = await serving({ name: 'special' }, web({ name: 'other', ips: {}, ports: [] }))
    for (let time = 0; time < 6; time++) {
      const [from, to] = time % 2 === 0 ? [main, special] : [special, main]
      // It takes over at another moment of what the other one does, each time.
      const late = async () => {
        await new Promise((resolve) => setTimeout(resolve, time * 20))
        await to.apply(web())
      }
      await Promise.all([from.apply(undefined), late()])
      assert.deepEqual(await destinationsAt('10.96.0.1'), ['10.244.1.1:8080 1', '10.244.1.2:8080 1'], `time ${time}`)
      assert.ok(await call('10.96.0.1', 80))
    }
    await special.backend.cleanup()
    await main.backend.close()
  },

  'clean-up removes what is ours, and leaves what is not': async () => {
    const foreign = { family: 'IPv4', protocol: 'tcp', address: '10.9.9.9', port: 99, mark: 0 } as const
    const server = { ...foreign, scheduler: 'rr', persistenceSeconds: 0 }
    await ipvs.change([{ do: 'newService', server }])
    const { backend } = await serving()
    assert.ok((await ipvs.servers()).length > 1)
    await backend.cleanup()
    assert.deepEqual(
      (await ipvs.servers()).map(({ key }) => key),
      ['10.9.9.9:99/tcp'],
    )
    assert.deepEqual(await tableNames(), [])
    assert.equal(await readTable('IPv4', 'kpng-ipvs'), undefined)
    assert.match(spawnSync('ip', ['link', 'show', 'kube-ipvs0'], { encoding: 'utf8' }).stderr, /does not exist/)
    await ipvs.change([{ do: 'deleteService', server }])
  },

  'a scheduler that the kernel lacks is one sentence with its module': async () => {
    const { warnings, backend, apply } = await serving({ scheduler: 'wlc' })
    await apply(web({ annotations: { 'kpng.sigs.k8s.io/ipvs-scheduler': 'lc' } }))
    assert.deepEqual([...new Set((await ipvs.servers()).map(({ scheduler }) => scheduler))], ['lc'])
    await apply(web({ annotations: { 'kpng.sigs.k8s.io/ipvs-scheduler': 'quick' } }))
    assert.deepEqual([...new Set((await ipvs.servers()).map(({ scheduler }) => scheduler))], ['wlc'])
    assert.match(warnings.join(), /no IPVS scheduler that a Service asks for/)
    await backend.close()
    // Kernels before 6.1 do not have it, and the VM's kernel is built without it.
    const missing = ipvsBackend({ ...options, scheduler: 'twos' })
    await missing.setup({ requestFullSync: () => {} }).then(
      () => console.log('  (this kernel has ip_vs_twos)'),
      (error) => assert.match(String(error), /scheduler twos: .*Load the module ip_vs_twos/),
    )
    await missing.cleanup()
  },
}

const ipvs = await Ipvs.open()
await startPods()
const code = await runChecks(checks, async () => {
  for (const backend of opened) await backend.close()
  opened.clear()
})
process.exit(code)
