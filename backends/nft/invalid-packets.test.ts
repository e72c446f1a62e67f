import { spawnSync } from 'node:child_process'
import { bytesOfIp, silentLog } from '@kpng/api'
import { type Flow, listFlows } from '@kpng/linux'
import koffi from 'koffi'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { enterNamespace } from '../../linux/testing/index.js'
import { nftBackend } from './backend.js'
import { addressOf, labView, type Name, options } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { whyNoKernel } from './testing/namespace.js'

// A packet outside the TCP window is invalid to conntrack, which then does not translate it back. A client that gets one from the
// endpoint's own address answers with a reset, and the endpoint closes the connection.

const checksum = (bytes: Buffer): number => {
  let sum = 0
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16)
  return ~sum & 0xffff
}

/** A TCP segment of a connection, from its endpoint to its client, with some sequence number. */
function strayPacket({ answeredBy, answeredByPort, source, sourcePort }: Flow, sequence: number): Buffer {
  const [from, to] = [Buffer.from(bytesOfIp(answeredBy) ?? []), Buffer.from(bytesOfIp(source) ?? [])]
  const tcp = Buffer.alloc(20)
  tcp.writeUInt16BE(answeredByPort, 0)
  tcp.writeUInt16BE(sourcePort, 2)
  tcp.writeUInt32BE(sequence, 4)
  tcp.writeUInt32BE(0x1234_5678, 8)
  tcp.writeUInt16BE((5 << 12) | 0x10, 12)
  tcp.writeUInt16BE(1024, 14)
  tcp.writeUInt16BE(checksum(Buffer.concat([from, to, Buffer.from([0, 6, 0, 20]), tcp])), 16)
  const ip = Buffer.from([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, ...from, ...to])
  ip.writeUInt16BE(checksum(ip), 10)
  return Buffer.concat([ip, tcp])
}

function sendRaw(packets: readonly Buffer[], to: string): void {
  const library = koffi.load(null)
  const [AF_INET, SOCK_RAW, IPPROTO_RAW] = [2, 3, 255]
  const fd = library.func('int socket(int, int, int)')(AF_INET, SOCK_RAW, IPPROTO_RAW)
  const address = Buffer.from([AF_INET, 0, 0, 0, ...(bytesOfIp(to) ?? []), 0, 0, 0, 0, 0, 0, 0, 0])
  const sendto = library.func('long sendto(int, const void *, size_t, int, const void *, int)')
  for (const packet of packets) expect(sendto(fd, packet, packet.length, 0, address, 16)).toBe(packet.length)
  library.func('int close(int)')(fd)
}

const nftIn = (namespace: string, ...args: string[]): string =>
  spawnSync('ip', ['netns', 'exec', namespace, 'nft', ...args], { encoding: 'utf8' }).stdout

/** Counts packets of the endpoint that match a condition, at a hook of a namespace. */
function counter(namespace: string, name: string, hook: string, from: string, condition = '') {
  nftIn(namespace, `add table ip ${name}`)
  nftIn(namespace, `add chain ip ${name} c { type filter hook ${hook} priority 0; }`)
  nftIn(namespace, `add rule ip ${name} c ip saddr ${from} tcp sport 8080 ${condition} counter`)
  return () => Number(/packets (\d+)/.exec(nftIn(namespace, 'list', 'chain', 'ip', name, 'c'))?.[1])
}

describe.skipIf(whyNoKernel() !== undefined)('packets that conntrack takes for invalid', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await Lab.build()
  })
  afterAll(() => lab.remove())

  test.each([
    [true, 'does not get them, and its connection goes on'],
    [false, 'gets them'],
  ])('dropInvalid %s: the client %s', async (dropInvalid) => {
    await enterNamespace(lab.namespace('node'))
    const backend = nftBackend({ ...options, log: silentLog, ipv6: false, dropInvalid })
    await backend.setup({ requestFullSync: () => {} })
    await backend.sync(labView(), fullSync)
    const request = { to: addressOf('web', 'ip'), port: 80, flow: `held-${dropInvalid}` }
    const [before = ''] = await lab.ask('podA2', request)
    const endpoint = before.split(' ')[0] as 'podA1' | 'podB1'
    const flows = await listFlows({ family: 'IPv4', protocol: 'tcp', ports: [80] })
    const flow = flows.find(
      ({ source, answeredBy }) =>
        source === addressOf('podA2', 'ip') && answeredBy === addressOf(endpoint as Name, 'ip'),
    )
    if (!flow) throw new Error('The connection is not in the table.')
    const name = `count-${dropInvalid}`
    const seenByNode = counter(lab.namespace('node'), name, 'prerouting', flow.answeredBy, 'ct state invalid')
    const seenByClient = counter(lab.namespace('podA2'), name, 'input', flow.answeredBy)
    await enterNamespace(lab.namespace(endpoint))
    // About half of all numbers are beyond the window. The others are old to conntrack, which lets them pass.
    const sequences = [0, 0x4000_0000, 0x8000_0000, 0xc000_0000]
    sendRaw(
      sequences.map((sequence) => strayPacket(flow, sequence)),
      flow.source,
    )
    await enterNamespace(lab.namespace('node'))
    await expect.poll(seenByNode, { timeout: 90_000 }).toBeGreaterThan(0)
    if (!dropInvalid) await expect.poll(seenByClient, { timeout: 90_000 }).toBeGreaterThan(0)
    else {
      // Asking comes after the stray packets on the same way.
      expect(await lab.ask('podA2', request)).toEqual([before])
      expect(seenByClient()).toBe(0)
    }
    await backend.cleanup()
  })
})
