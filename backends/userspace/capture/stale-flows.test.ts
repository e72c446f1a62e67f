import { type Family, KpngError } from '@kpng/api'
import type { Flow, FlowSelection } from '@kpng/linux'
import { describe, expect, it } from 'vitest'
import { recordingLog } from '../testing/peers.js'
import type { OpenPortal, Steering } from './capture.js'
import { movedPortals, staleFlowRemoval } from './stale-flows.js'

const nobody = { endpoints: [], otherwise: 'refuse' } as const

const open = (init: Partial<OpenPortal['portal']> = {}, place: Partial<OpenPortal['place']> = {}): OpenPortal => ({
  portal: {
    ...{
      id: '10.96.0.10:53/udp',
      service: 'default/dns',
      portName: 'dns',
      kind: 'clusterIP',
      family: 'IPv4',
      protocol: 'udp',
    },
    ...{ address: '10.96.0.10', port: 53, inside: nobody, outside: nobody, draining: [], masquerade: 'notPods' },
    ...{ allowedSources: undefined, sessionAffinitySeconds: undefined },
    ...init,
  },
  place: { ip: '10.0.0.5', port: 40_000, ...place },
})

const steering = (rest: Partial<Pick<Steering, 'added' | 'removed'>>) => ({ added: [], removed: [], ...rest })

const flow = (destination: string, destinationPort: number, family: Family = 'IPv4'): Flow => ({
  ...{ family, protocol: 'udp', source: '10.70.0.2', sourcePort: 4000, destination, destinationPort },
  ...{ answeredBy: '10.0.0.5', answeredByPort: 40_000, isRedirected: true },
})

/** A kernel with these flows. */
function kernelWith(flows: readonly Flow[], failures: string[] = []) {
  const asked: FlowSelection[] = []
  const deleted: string[] = []
  const { lines, log } = recordingLog()
  const remove = staleFlowRemoval({
    log,
    remove: async (selection, isStale) => {
      asked.push(selection)
      const failure = failures.shift()
      if (failure !== undefined) throw new KpngError('unsupported', failure)
      const stale = flows.filter((flow) => flow.family === selection.family && isStale(flow))
      deleted.push(...stale.map(({ destination, destinationPort }) => `${destination} ${destinationPort}`))
      return stale.length
    },
  })
  const warnings = () => lines.filter(({ level }) => level === 'warn')
  return { asked, deleted, remove, warnings }
}

describe('UDP flows of portals that moved', () => {
  it('a portal has moved when its place did, in its family', () => {
    const udp = open()
    expect(movedPortals(steering({ removed: [udp], added: [udp] }))).toEqual([])
    for (const place of [{ port: 40_001 }, { ip: '10.0.0.6' }]) {
      const moved = open({}, place)
      expect(movedPortals(steering({ removed: [udp], added: [moved] }))).toEqual([udp, moved])
    }
    const nodePort = open({ address: '', port: 30_053 })
    const six = open({ address: '', port: 30_053, family: 'IPv6' })
    expect(movedPortals(steering({ removed: [nodePort], added: [six] }))).toEqual([nodePort, six])
  })

  it('are looked for once per family, however many portals there are', async () => {
    const { asked, remove } = kernelWith([])
    const added = Array.from({ length: 800 }, (_, i) => open({ address: `10.96.${i >> 8}.${i & 255}` }))
    await remove(steering({ added }))
    expect(asked).toEqual([{ family: 'IPv4', protocol: 'udp', ports: [53] }])
  })

  it('are deleted by address; nothing else is', async () => {
    const { asked, deleted, remove } = kernelWith([
      flow('10.96.0.10', 53),
      flow('10.96.0.10', 54),
      flow('8.8.8.8', 53),
      flow('10.0.0.5', 30_053),
      flow('10.0.0.6', 30_053),
      flow('fd96::10', 53, 'IPv6'),
      flow('fd96::11', 53, 'IPv6'),
    ])
    const portals = [open(), open({ address: '', port: 30_053 }), open({ address: 'fd96::10', family: 'IPv6' })]
    await remove(steering({ added: portals }))
    expect(deleted).toEqual(['10.96.0.10 53', '10.0.0.5 30053', '10.0.0.6 30053', 'fd96::10 53'])
    expect(asked).toEqual([
      { family: 'IPv4', protocol: 'udp', ports: [53, 30_053] },
      { family: 'IPv6', protocol: 'udp', ports: [53] },
    ])
  })

  it('need no look for TCP, and for portals that stay where they are', async () => {
    const { asked, remove } = kernelWith([])
    await remove(steering({ added: [open({ protocol: 'tcp' })] }))
    await remove(steering({ added: [open()], removed: [open()] }))
    expect(asked).toEqual([])
  })

  it('that cannot be removed are warned about once, and tried again each time', async () => {
    const { deleted, remove, warnings } = kernelWith([flow('10.96.0.10', 53)], ['no koffi', 'no koffi', 'no memory'])
    for (let time = 1; time <= 2; time++) await remove(steering({ added: [open()] }))
    expect(warnings()).toEqual([expect.objectContaining({ fields: { error: 'no koffi' } })])
    await remove(steering({ added: [open()] }))
    expect(warnings()).toHaveLength(2)
    expect(deleted).toEqual([])
    await remove(steering({ added: [open()] }))
    expect(deleted).toEqual(['10.96.0.10 53'])
  })
})
