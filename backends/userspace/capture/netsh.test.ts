import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError, silentLog } from '@kpng/api'
import { afterEach, describe, expect, it } from 'vitest'
import { userspaceBackend } from '../backend.js'
import { Cluster, endpoint } from '../testing/cluster.js'
import { outcome, recordingLog, tcpServer } from '../testing/peers.js'
import { type NetshOptions, netshCapture } from './netsh.js'
import { addArguments, defaultInterface, deleteArguments, showArguments } from './netsh-arguments.js'

describe("netsh's arguments", () => {
  it.each([
    [
      addArguments('IPv4', defaultInterface, '10.96.0.1'),
      'interface|ipv4|add|address|name=vEthernet (HNS Internal NIC)|address=10.96.0.1|mask=255.255.255.255',
    ],
    [
      deleteArguments('IPv4', defaultInterface, '10.96.0.1'),
      'interface|ipv4|delete|address|name=vEthernet (HNS Internal NIC)|address=10.96.0.1',
    ],
    [showArguments('IPv4', defaultInterface), 'interface|ipv4|show|address|name=vEthernet (HNS Internal NIC)'],
    [addArguments('IPv6', 'Ethernet', 'fd96::1'), 'interface|ipv6|add|address|interface=Ethernet|address=fd96::1/128'],
    [
      deleteArguments('IPv6', 'Ethernet', 'fd96::1'),
      'interface|ipv6|delete|address|interface=Ethernet|address=fd96::1',
    ],
    [showArguments('IPv6', 'Ethernet'), 'interface|ipv6|show|address|interface=Ethernet'],
  ])('%j', (args, expected) => expect(args.join('|')).toBe(expected))
})

/** An interface as netsh shows it, in German; an added address shows after some looks. */
function fakeNetsh(...present: string[]) {
  const addresses = new Set(present)
  const coming = new Map<string, number>()
  const calls: string[] = []
  let broken: string | undefined
  const run: NonNullable<NetshOptions['run']> = async (program, args) => {
    calls.push([program, ...args].join(' '))
    const ip = args[5]?.split('=')[1]?.split('/')[0] ?? ''
    if (args[2] !== 'show' && broken !== undefined) throw new KpngError('refused', broken)
    if (args[2] === 'add') coming.set(ip, 2)
    if (args[2] === 'delete') addresses.delete(ip)
    for (const [address, looks] of coming) {
      if (looks === 0) addresses.add(address)
      coming.set(address, looks - 1)
    }
    return [...addresses].map((address) => `    IP-Adresse:                           ${address}`).join('\r\n')
  }
  const changes = () =>
    calls
      .filter((call) => !call.includes(' show '))
      .map((call) => call.replace(/.*ipv. (\w+).*address=([^ ]+).*/, '$1 $2'))
  return { run, calls, changes, fail: (message: string | undefined) => (broken = message) }
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(netsh: ReturnType<typeof fakeNetsh>, options: Partial<NetshOptions> = {}, log = silentLog) {
  const capture = netshCapture({ log, run: netsh.run, pollMs: 5, usableTimeoutMs: 300, ...options })
  const backend = userspaceBackend({ capture, log, syncPeriodMs: 0, allowLoopback: true })
  await backend.setup({ requestFullSync: () => {} })
  closers.push(() => backend.close())
  const pod = await tcpServer('127.20.0.1', 'pod')
  closers.push(() => pod.close())
  return { backend, cluster: new Cluster(backend), endpoints: [endpoint('127.20.0.1', pod.port)] }
}

const ips = (...v4: string[]) => ({ clusterIps: { v4 } })
const port = (name: string, number: number) => ({ name, protocol: 1, port: number, targetPort: 8080 })

describe('addresses by netsh', () => {
  it('adds an address once, waits until it is usable, and deletes it with its last portal', async () => {
    const netsh = fakeNetsh('192.168.1.5')
    const { cluster, endpoints } = await start(netsh)
    await cluster.set('web', { ips: ips('127.30.0.1'), ports: [port('http', 8080), port('https', 8443)] }, endpoints)
    expect(netsh.changes()).toEqual(['add 127.30.0.1'])
    expect(await outcome('127.30.0.1', 8080)).toBe('pod')
    await cluster.set('web', { ips: ips('127.30.0.1'), ports: [port('http', 8080)] }, endpoints)
    expect(netsh.changes()).toEqual(['add 127.30.0.1'])
    await cluster.set('web', undefined)
    expect(netsh.changes()).toEqual(['add 127.30.0.1', 'delete 127.30.0.1'])
  })

  it('never deletes an address that was there before', async () => {
    const netsh = fakeNetsh('127.30.0.2')
    const { cluster, endpoints, backend } = await start(netsh)
    await cluster.set('web', { ips: ips('127.30.0.2'), ports: [port('http', 8080)] }, endpoints)
    await cluster.set('web', undefined)
    await backend.cleanup()
    expect(netsh.changes()).toEqual([])
  })

  it('opens node ports without netsh', async () => {
    const netsh = fakeNetsh()
    const { cluster, endpoints } = await start(netsh)
    await cluster.setNode({ addresses: ['127.0.0.1'] })
    await cluster.set('web', { ips: {}, ports: [{ ...port('http', 8080), nodePort: 30_912 }] } as never, endpoints)
    expect(await outcome('127.0.0.1', 30_912)).toBe('pod')
    expect(netsh.changes()).toEqual([])
  })

  it('a failing netsh, or an address that never comes, is told; the other services go on', async () => {
    const { lines, log } = recordingLog()
    const netsh = fakeNetsh()
    const { cluster, endpoints, backend } = await start(netsh, {}, log)
    await cluster.set('good', { ips: ips('127.30.0.3'), ports: [port('http', 8080)] }, endpoints)
    netsh.fail('`netsh …` failed: The object is already in the list.')
    await cluster.set('bad', { ips: ips('127.30.0.4'), ports: [port('http', 8080)] }, endpoints)
    expect([...backend.observations.failures()]).toEqual([
      ['127.30.0.4:8080/tcp', expect.stringContaining('already in the list')],
    ])
    expect(lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      'Failed to start proxy',
    ])
    expect(await outcome('127.30.0.3', 8080)).toBe('pod')
    netsh.fail(undefined)
    await cluster.set('other', { ips: {} } as never)
    expect(backend.observations.failures().size).toBe(0)
    expect(await outcome('127.30.0.4', 8080)).toBe('pod')
  })

  it('takes away what belongs to services that went while it was down, and what it could not delete before', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-netsh-'))
    closers.push(() => rmSync(folder, { recursive: true }))
    const stateFile = join(folder, 'addresses.json')
    writeFileSync(
      stateFile,
      JSON.stringify({ addresses: { '127.30.0.6': defaultInterface, '127.30.0.7': defaultInterface } }),
    )
    const netsh = fakeNetsh('192.168.1.5', '127.30.0.6', '127.30.0.7')
    const { cluster, endpoints } = await start(netsh, { stateFile })
    const web = { ips: ips('127.30.0.7'), ports: [port('http', 8080)] }
    await cluster.set('web', web, endpoints)
    expect(netsh.changes()).toEqual(['delete 127.30.0.6'])
    netsh.fail('`netsh …` failed: Access is denied.')
    await cluster.set('web', undefined)
    netsh.fail(undefined)
    await cluster.fullSync()
    expect(netsh.changes()).toEqual(['delete 127.30.0.6', 'delete 127.30.0.7', 'delete 127.30.0.7'])
    expect(JSON.parse(readFileSync(stateFile, 'utf8'))).toEqual({ addresses: {} })
  })

  it('does not take an address away that is slow to come, and is waited for again', async () => {
    const netsh = fakeNetsh()
    const { cluster, endpoints, backend } = await start(netsh, { usableTimeoutMs: 0 })
    await cluster.set('web', { ips: ips('127.30.0.8'), ports: [port('http', 8080)] }, endpoints)
    expect(backend.observations.failures().size).toBe(1)
    await cluster.fullSync()
    expect(netsh.changes()).toEqual(['add 127.30.0.8'])
    expect(await outcome('127.30.0.8', 8080)).toBe('pod')
  })

  it('says that netsh is missing, or does not know the interface', async () => {
    const missing = netshCapture({ log: silentLog })
    if (process.platform !== 'win32')
      await expect(missing.setup(() => {})).rejects.toThrow('netsh is not installed or not in PATH')
    const unknown = netshCapture({
      log: silentLog,
      interfaceName: 'No such',
      run: async () => {
        throw new KpngError('refused', 'The filename, directory name, or volume label syntax is incorrect.')
      },
    })
    await expect(unknown.setup(() => {})).rejects.toThrow('netsh does not know the interface "No such"; name the one')
  })

  it('remembers across a crash what it added', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-netsh-'))
    closers.push(() => rmSync(folder, { recursive: true }))
    const stateFile = join(folder, 'deep', 'addresses.json')
    const netsh = fakeNetsh('192.168.1.5')
    const { cluster, endpoints } = await start(netsh, { stateFile, interfaceName: 'Ethernet 2' })
    await cluster.set('web', { ips: ips('127.30.0.5'), ports: [port('http', 8080)] }, endpoints)
    const written = () => JSON.parse(readFileSync(stateFile, 'utf8'))
    expect(written()).toEqual({ addresses: { '127.30.0.5': 'Ethernet 2' } })
    // Another process, after the first one died. `kpng cleanup` is not told the interface.
    await netshCapture({ log: silentLog, run: netsh.run, stateFile }).cleanup()
    expect(netsh.changes()).toEqual(['add 127.30.0.5', 'delete 127.30.0.5'])
    expect(netsh.calls.at(-1)).toContain('name=Ethernet 2 ')
    expect(written()).toEqual({ addresses: {} })
    writeFileSync(stateFile, 'not JSON')
    const { lines, log } = recordingLog()
    await netshCapture({ log, run: netsh.run, stateFile }).cleanup()
    expect(lines[0]?.message).toBe('The record of added addresses cannot be read and is begun anew')
    expect(existsSync(stateFile)).toBe(true)
  })
})
