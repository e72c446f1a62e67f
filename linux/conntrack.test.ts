import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Family } from '@kpng/api'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { deleteFlows, type Flow, type FlowSelection, listFlows } from './conntrack.js'
import * as messages from './conntrack-messages.js'
import { whySkipped } from './lab/requirements.js'
import * as libc from './libc.js'
import { MessageBuffer } from './netlink/buffer.js'
import { enterNewNamespace } from './testing/namespace.js'

const why = whySkipped('connections in the kernel', 'conntrack')

function conntrack(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('conntrack', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`conntrack ${args.join(' ')}: ${stderr}`)
  return stdout
}

const address: Readonly<Record<Family, (number: number) => string>> = {
  IPv4: (number) => `10.0.${number >> 8}.${number & 255}`,
  IPv6: (number) => `fd00::${number.toString(16)}`,
}

/** Makes a flow from an address of its own. */
function makeFlow(
  family: Family,
  protocol: 'udp' | 'tcp',
  destination: string,
  port: number,
  source: number,
  ...more: string[]
) {
  const tcp = protocol === 'tcp' ? ['--state', 'ESTABLISHED'] : []
  const ends = ['-s', address[family](source), '-d', destination, '--sport', '1024', '--dport', String(port)]
  conntrack('-I', '-p', protocol, ...ends, ...tcp, ...more, '-t', '300')
}

const portsOf = (flows: readonly Flow[]) => flows.map(({ destinationPort }) => destinationPort).sort()

describe.skipIf(why !== undefined)('connections in the kernel', () => {
  beforeAll(() => enterNewNamespace())

  describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
    const [served, other, pod] = [address[family](4001), address[family](4002), address[family](4003)]
    const udp: FlowSelection = { family, protocol: 'udp' }

    beforeAll(() => {
      conntrack('-F')
      makeFlow(family, 'udp', served, 53, 1, '--dst-nat', pod)
      makeFlow(family, 'udp', served, 53, 2)
      makeFlow(family, 'udp', served, 54, 3)
      makeFlow(family, 'udp', other, 53, 4)
      makeFlow(family, 'tcp', served, 53, 5)
    })

    test('are values with both ends, as the client sees it and as it is answered', async () => {
      const [redirected] = (await listFlows(udp)).filter(({ source }) => source === address[family](1))
      expect(redirected).toEqual({
        ...{ family, protocol: 'udp', source: address[family](1), sourcePort: 1024 },
        ...{ destination: served, destinationPort: 53 },
        ...{ answeredBy: pod, answeredByPort: 53, isRedirected: true },
      })
      const [plain] = (await listFlows(udp)).filter(({ source }) => source === address[family](2))
      expect(plain).toMatchObject({ answeredBy: served, answeredByPort: 53, isRedirected: false })
    })

    test('are listed by protocol and by port', async () => {
      expect(portsOf(await listFlows(udp))).toEqual([53, 53, 53, 54])
      expect(portsOf(await listFlows({ ...udp, ports: [54] }))).toEqual([54])
      expect(portsOf(await listFlows({ ...udp, ports: [53, 54, 54, 55] }))).toEqual([53, 53, 53, 54])
      expect(portsOf(await listFlows({ ...udp, ports: [] }))).toEqual([])
      expect(portsOf(await listFlows({ family, protocol: 'tcp' }))).toEqual([53])
      expect(await listFlows({ family, protocol: 'sctp' })).toEqual([])
    })

    test('of many ports come from one list of the protocol', async () => {
      const filters = vi.spyOn(messages, 'writeFilter')
      const ports = Array.from({ length: 20 }, (_, index) => 54 + index)
      expect(portsOf(await listFlows({ ...udp, ports }))).toEqual([54])
      expect(filters.mock.calls.map(([, , port]) => port)).toEqual([undefined])
      filters.mockRestore()
    })

    test('are listed even if the kernel refuses the filter', async () => {
      // The kernel answers EINVAL to a filter with fields that it does not know.
      const filter = vi.spyOn(messages, 'writeFilter').mockImplementation((buffer) => {
        buffer.nested(25, () => buffer.hostU32(1, 0xffff_ffff))
      })
      const requests = vi.spyOn(MessageBuffer.prototype, 'beginNetfilter')
      expect(portsOf(await listFlows({ ...udp, ports: [54] }))).toEqual([54])
      expect([filter.mock.calls.length, requests.mock.calls.length]).toEqual([1, 2])
      filter.mockRestore()
      requests.mockRestore()
    })

    test('are deleted if they are stale, and only then', async () => {
      const toServed = (flow: Flow) => flow.destination === served
      expect(await deleteFlows({ ...udp, ports: [53] }, () => false)).toBe(0)
      expect(await deleteFlows({ ...udp, ports: [53] }, toServed)).toBe(2)
      expect((await listFlows(udp)).map(({ destination, destinationPort }) => [destination, destinationPort])).toEqual(
        expect.arrayContaining([
          [served, 54],
          [other, 53],
        ]),
      )
      expect(await listFlows(udp)).toHaveLength(2)
      expect(await listFlows({ family, protocol: 'tcp' })).toHaveLength(1)
    })

    test('may end by themselves before they are deleted', async () => {
      makeFlow(family, 'udp', served, 5353, 7)
      makeFlow(family, 'udp', served, 5353, 8)
      const source = address[family](7)
      const deleted = await deleteFlows({ ...udp, ports: [5353] }, (flow) => {
        if (flow.source === source) conntrack('-D', '-p', 'udp', '-s', source, '-d', served, '--dport', '5353')
        return true
      })
      expect(deleted).toBe(1)
    })
  })

  test('of the same addresses and ports in two zones, only the stale one is deleted', async () => {
    const udp: FlowSelection = { family: 'IPv4', protocol: 'udp', ports: [7001] }
    makeFlow('IPv4', 'udp', '10.0.16.1', 7001, 11)
    makeFlow('IPv4', 'udp', '10.0.16.1', 7001, 11, '--dst-nat', '10.0.16.2', '-w', '5')
    expect(await listFlows(udp)).toHaveLength(2)
    expect(await deleteFlows(udp, ({ isRedirected }) => isRedirected)).toBe(1)
    expect(await listFlows(udp)).toMatchObject([{ isRedirected: false }])
  })

  test('a flow that took the place of a stale one meanwhile is not deleted', async () => {
    const udp: FlowSelection = { family: 'IPv4', protocol: 'udp', ports: [7002] }
    makeFlow('IPv4', 'udp', '10.0.16.1', 7002, 12, '--dst-nat', '10.0.16.2')
    const deleted = await deleteFlows(udp, () => {
      conntrack('-D', '-p', 'udp', '-d', '10.0.16.1', '--dport', '7002')
      makeFlow('IPv4', 'udp', '10.0.16.1', 7002, 12, '--dst-nat', '10.0.16.3')
      return true
    })
    expect(deleted).toBe(0)
    expect(await listFlows(udp)).toMatchObject([{ answeredBy: '10.0.16.3' }])
  })

  test('without koffi each call fails, and the next may succeed', async () => {
    const load = vi
      .spyOn(libc, 'loadLibc')
      .mockRejectedValueOnce(new Error('no koffi'))
      .mockRejectedValueOnce(new Error('no koffi'))
    const selection: FlowSelection = { family: 'IPv4', protocol: 'udp' }
    await expect(deleteFlows(selection, () => true)).rejects.toThrow('no koffi')
    await expect(listFlows(selection)).rejects.toThrow('no koffi')
    load.mockRestore()
    await listFlows(selection)
  })

  describe('of which there are 100,000', () => {
    beforeAll(() => {
      const lines = Array.from({ length: 100_000 }, (_, index) => {
        const source = `100.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
        return `-I -p tcp -s ${source} -d 10.200.0.1 --sport 1024 --dport 443 --state ESTABLISHED -t 3000`
      })
      const folder = mkdtempSync(join(tmpdir(), 'kpng-conntrack-'))
      writeFileSync(join(folder, 'flows'), `${lines.join('\n')}\n`)
      spawnSync('conntrack', ['-R', join(folder, 'flows')], { timeout: 100_000 })
      rmSync(folder, { recursive: true })
      makeFlow('IPv4', 'udp', '10.0.15.161', 54, 9)
    }, 300_000)

    test('are not read for one UDP port (53, 65)', async () => {
      const looked = vi.spyOn(messages, 'flowIn')
      const selection: FlowSelection = { family: 'IPv4', protocol: 'udp', ports: [54] }
      const startedMs = performance.now()
      expect(await deleteFlows(selection, () => true)).toBe(1)
      const tookMs = performance.now() - startedMs
      console.log(`${conntrack('-C').trim()} connections: those of one UDP port were found in ${tookMs.toFixed(1)} ms`)
      expect(looked).toHaveBeenCalledTimes(1)
      looked.mockRestore()
    })

    test('leave the process time for other work while all are read', async () => {
      let turns = 0
      const timer = setInterval(() => turns++, 1)
      const flows = await listFlows({ family: 'IPv4', protocol: 'tcp', ports: [443] })
      clearInterval(timer)
      expect(flows.length).toBeGreaterThan(50_000)
      expect(turns).toBeGreaterThan(10)
    })
  })
})
