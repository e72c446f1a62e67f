import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FrontendTable } from './frontend-table.js'
import { StaleFlowRemoval, type StaleFlowRemovalOptions } from './stale-flow-removal.js'
import type { FlowCheck } from './stale-flows.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const dns: FlowCheck = { kind: 'clusterIP', family: 'IPv4', address: '10.96.0.10', protocol: 'udp', port: 53 }

/** A kernel that deletes what it is told to, or fails. */
function removing(deleteFlows: StaleFlowRemovalOptions['deleteFlows']) {
  const told: number[] = []
  const warnings: string[] = []
  const looks: object[] = []
  const removal = new StaleFlowRemoval({
    table: new FrontendTable(),
    deleteFlows: (selection, isStale) => {
      looks.push(selection)
      return deleteFlows(selection, isStale)
    },
    onRemoved: (_family, _ms, deleted) => void told.push(deleted),
    log: { ...silentLog, warn: (message) => warnings.push(message) },
  })
  return { removal, told, warnings, looks }
}

const muchLater = () => vi.advanceTimersByTimeAsync(60_000)

describe('stale flows', () => {
  test('are looked for once more a moment later, for packets that were on their way', async () => {
    const { removal, told, looks } = removing(async () => 0)
    expect(await removal.remove([dns])).toBe(0)
    expect(looks).toHaveLength(1)
    await muchLater()
    expect(looks).toHaveLength(2)
    // The second look found nothing, and is not worth a measurement.
    expect(told).toEqual([0])
  })

  test('are looked for again after a failure, but not for ever, and the log says it once', async () => {
    const { removal, told, warnings, looks } = removing(() => Promise.reject(new Error('no conntrack')))
    await removal.remove([dns])
    await muchLater()
    expect(looks).toHaveLength(4)
    expect(warnings).toHaveLength(1)
    expect(told).toEqual([])
  })

  test('are looked for by port, and everywhere if a Service has a whole address', async () => {
    const { removal, looks } = removing(async () => 0)
    await removal.remove([
      dns,
      { ...dns, address: '10.96.0.11' },
      { ...dns, family: 'IPv6', address: 'fd00::1', port: 54 },
    ])
    await removal.remove([dns, { ...dns, kind: 'externalIP', protocol: 'any', port: 0 }])
    expect(looks).toEqual([
      { family: 'IPv4', protocol: 'udp', ports: [53] },
      { family: 'IPv6', protocol: 'udp', ports: [54] },
      { family: 'IPv4', protocol: 'udp' },
    ])
  })

  test('are not looked for after the end', async () => {
    const { removal, looks } = removing(async () => 0)
    await removal.remove([dns])
    await removal.close()
    await muchLater()
    expect(looks).toHaveLength(1)
  })
})
