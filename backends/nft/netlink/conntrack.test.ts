import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Libc, loadLibc } from '@kpng/linux'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Family, parseAddress } from '../address.js'
import { nodePortKey, serviceKey } from '../element.js'
import type { Flow } from '../stale-flows.js'
import { enterNewNamespace, whyNoKernel } from '../testing/namespace.js'
import { deleteUdpFlows } from './conntrack.js'

const bytes = (text: string) => parseAddress(text)?.bytes ?? ''

const hasConntrack = spawnSync('conntrack', ['--version']).status === 0

function conntrack(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('conntrack', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`conntrack ${args.join(' ')}: ${stderr}`)
  return stdout
}

const address: Readonly<Record<Family, (number: number) => string>> = {
  ip: (number) => `10.0.${number >> 8}.${number & 255}`,
  ip6: (number) => `fd00::${number.toString(16)}`,
}

/** Makes a flow from an address of its own. */
function makeFlow(family: Family, protocol: 'udp' | 'tcp', destination: string, port: number, source: number): void {
  const tcp = protocol === 'tcp' ? ['--state', 'ESTABLISHED'] : []
  const ends = ['-s', address[family](source), '-d', destination, '--sport', '1024', '--dport', String(port)]
  conntrack('-I', '-p', protocol, ...ends, ...tcp, '-t', '300')
}

describe.skipIf(whyNoKernel() !== undefined || !hasConntrack)('UDP flows in the kernel', () => {
  let libc: Libc
  beforeAll(async () => {
    enterNewNamespace()
    libc = await loadLibc()
  })

  describe.each(['ip', 'ip6'] as const)('%s', (family) => {
    const [served, other] = [address[family](4001), address[family](4002)]

    /** The flows that were looked at, and how many went. */
    async function look(keys: readonly string[], isStale = (_: Flow) => false) {
      const seen: Flow[] = []
      const deleted = await deleteUdpFlows(libc, family, keys, (flow) => {
        seen.push(flow)
        return isStale(flow)
      })
      return { seen: seen.map(({ destinationPort }) => destinationPort).sort(), deleted }
    }

    beforeAll(() => {
      makeFlow(family, 'udp', served, 53, 1)
      makeFlow(family, 'udp', served, 53, 2)
      makeFlow(family, 'udp', served, 54, 3)
      makeFlow(family, 'udp', other, 53, 4)
      makeFlow(family, 'tcp', served, 53, 5)
    })

    test('only those to the keys that are asked for are listed', async () => {
      const key = serviceKey(bytes(served), 'udp', 53)
      // Kernels take a filter by IPv6 address for its opposite, so there it is only by port.
      const seen = family === 'ip' ? [53, 53] : [53, 53, 53]
      expect(await look([key])).toEqual({ seen, deleted: 0 })
      expect(await look([nodePortKey('udp', 54)])).toEqual({ seen: [54], deleted: 0 })
      expect(await look([key, nodePortKey('udp', 54)])).toEqual({ seen: [...seen, 54], deleted: 0 })
    })

    test('for many keys all of UDP is listed, once', async () => {
      const keys = Array.from({ length: 20 }, (_, index) => nodePortKey('udp', 50 + index))
      expect(await look(keys)).toEqual({ seen: [53, 53, 53, 54], deleted: 0 })
    })

    test('those that are stale go', async () => {
      const key = serviceKey(bytes(served), 'udp', 53)
      expect((await look([key, nodePortKey('udp', 53)], (flow) => flow.destination === bytes(served))).deleted).toBe(2)
      expect(await look([nodePortKey('udp', 53)])).toEqual({ seen: [53], deleted: 0 })
    })
  })

  test('100,000 TCP connections are not read for one UDP service (53, 65)', { timeout: 150_000 }, async () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => {
      const source = `100.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
      return `-I -p tcp -s ${source} -d 10.200.0.1 --sport 1024 --dport 443 --state ESTABLISHED -t 3000`
    })
    const folder = mkdtempSync(join(tmpdir(), 'kpng-conntrack-'))
    writeFileSync(join(folder, 'flows'), `${lines.join('\n')}\n`)
    spawnSync('conntrack', ['-R', join(folder, 'flows')], { timeout: 100_000 })
    rmSync(folder, { recursive: true })
    const entries = Number(conntrack('-C'))
    const startedMs = performance.now()
    await deleteUdpFlows(libc, 'ip', [serviceKey(bytes('10.0.15.161'), 'udp', 54)], () => true)
    const took = performance.now() - startedMs
    console.log(`${entries} connections: the flows of one UDP service were found in ${took.toFixed(1)} ms`)
    expect(took).toBeLessThan(100 + entries / 1000)
  })
})
