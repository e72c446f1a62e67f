import { KpngError, silentLog } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { openPortal, type PortalInit, steeringOf as steering } from '../testing/open-portal.js'
import type { Place } from './capture.js'
import { forgetUdpFlows, movedPortals } from './conntrack.js'
import { udpDestinations } from './udp-destinations.js'

const open = (init: PortalInit = {}, place: Partial<Place> = {}) =>
  openPortal({ protocol: 'udp', address: '10.96.0.10', port: 53, ...init }, { ip: '10.0.0.5', ...place })

/** A line as conntrack prints it: what the client sent, then how it is answered. */
const flow = (dst: string, dport: number, proxyPort = 40_000) =>
  `udp      17 29 src=10.70.0.2 dst=${dst} sport=4000 dport=${dport} [UNREPLIED] src=10.0.0.5 dst=10.70.0.2 sport=${proxyPort} dport=4000 mark=0 use=1\n`

function fakeConntrack(listed: Record<string, string>) {
  const calls: string[] = []
  const run = async (_program: string, args: readonly string[]) => {
    calls.push(args.join(' '))
    if (args[0] === '-D') throw new KpngError('refused', 'conntrack v1.4.7: 0 flow entries have been deleted.')
    return listed[args[2] as string] ?? ''
  }
  return { calls, run }
}

describe('UDP flows of portals that moved', () => {
  it('a portal has moved when its place did, in its family', () => {
    const udp = open()
    expect(movedPortals(steering({ removed: [udp], added: [udp] }))).toEqual([])
    for (const place of [{ port: 40_001 }, { ip: '10.0.0.6' }]) {
      const moved = open({}, place)
      expect(movedPortals(steering({ removed: [udp], added: [moved] }))).toEqual([udp, moved])
    }
    const nodePort = open({ address: '', port: 30_053, kind: 'nodePort' })
    const six = open({ address: '', port: 30_053, family: 'IPv6', kind: 'nodePort' })
    expect(movedPortals(steering({ removed: [nodePort], added: [six] }))).toEqual([nodePort, six])
  })

  it('an empty table costs one look, however many portals there are', async () => {
    const { calls, run } = fakeConntrack({})
    const added = Array.from({ length: 800 }, (_, i) => open({ address: `10.96.${i >> 8}.${i & 255}` }))
    await forgetUdpFlows(steering({ added, extent: 'full' }), run, silentLog)
    expect(calls).toEqual(['-L -f ipv4 -p udp'])
  })

  it('what leads to a portal is deleted, by address; nothing else is', async () => {
    const { calls, run } = fakeConntrack({
      ipv4: [
        flow('10.96.0.10', 53),
        flow('10.96.0.10', 53, 40_009),
        flow('10.96.0.10', 54),
        flow('8.8.8.8', 53),
        flow('10.0.0.5', 30_053),
        flow('10.0.0.6', 30_053),
      ].join(''),
      ipv6: flow('fd96::10', 53),
    })
    const portals = [
      open(),
      open({ address: '', port: 30_053, kind: 'nodePort' }),
      open({ address: 'fd96::10', family: 'IPv6' }),
    ]
    await forgetUdpFlows(steering({ added: portals }), run, silentLog)
    expect(calls).toEqual([
      '-L -f ipv4 -p udp',
      '-D -f ipv4 -p udp --orig-dst 10.96.0.10 --orig-port-dst 53',
      '-D -f ipv4 -p udp --orig-dst 10.0.0.5 --orig-port-dst 30053',
      '-D -f ipv4 -p udp --orig-dst 10.0.0.6 --orig-port-dst 30053',
      '-L -f ipv6 -p udp',
      '-D -f ipv6 -p udp --orig-dst fd96::10 --orig-port-dst 53',
    ])
  })

  it('TCP, and portals that stay where they are, need no look', async () => {
    const { calls, run } = fakeConntrack({})
    await forgetUdpFlows(steering({ added: [open({ protocol: 'tcp' })] }), run, silentLog)
    await forgetUdpFlows(steering({ added: [open()], removed: [open()], extent: 'full' }), run, silentLog)
    expect(calls).toEqual([])
  })

  it('reads addresses however they are written', () => {
    expect(udpDestinations(flow('FD96:0:0::10', 53) + flow('fd96::10', 53))).toEqual([{ ip: 'fd96::10', port: 53 }])
    expect(udpDestinations('tcp      6 1 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2\n')).toEqual([])
  })
})
