import { SourceStatus, staleAfterMs } from '@kpng/client'
import { expect, test } from 'vitest'
import { sourceLines, sourceReport } from './source-report.js'

const startedAtUnixMs = Date.parse('2026-11-16T12:00:00Z')

/** A status, and the report on it some time after the start. */
function reporting(...names: string[]) {
  const status = new SourceStatus()
  for (const name of names) status.watch(name)
  const startedAtMs = performance.now()
  const after = (ms: number) => sourceReport(status, startedAtMs + ms, startedAtUnixMs + ms)
  return { status, after }
}

test('a source that watches nothing has no report', () => {
  expect(reporting().after(0)).toBeUndefined()
  expect(sourceLines(undefined)).toEqual({})
})

test('without a connection it is stale after a minute, and the reason names the resource and the time', () => {
  const { status, after } = reporting('services', 'nodes')
  status.watch('nodes').connected()
  expect(after(staleAfterMs / 2)).toMatchObject({ stale: false, watches: { services: { connected: false } } })
  const report = after(staleAfterMs + 5)
  expect(report?.stale).toBe(true)
  expect(report?.reason).toMatch(/^Not connected since 2026-11-16T(?:11:59:59|12:00:00)\.\d+Z: services\.$/)
  expect(sourceLines(report)).toMatchObject({
    Stale: report?.reason,
    'Source services': expect.stringMatching(/^not connected since 2026-.*, last event never$/),
    'Source nodes': expect.stringMatching(/^connected since 2026-.*, last event 2026-/),
  })
})

test('watches that were lost are named together, and each tells when it last brought something', () => {
  const { status, after } = reporting('services', 'nodes')
  for (const watch of status.watches.values()) {
    watch.connected()
    watch.lost()
  }
  expect(after(0)?.stale).toBe(false)
  const report = after(staleAfterMs + 50)
  expect(report?.reason).toMatch(/^Not connected since 2026-.*Z: services, nodes\.$/)
  expect(report?.watches.nodes?.lastEvent).toMatch(/^2026-/)
})

test('a connected watch is never stale, however quiet it is', () => {
  const { status, after } = reporting('services')
  status.watch('services').connected()
  const report = after(10 * staleAfterMs)
  expect(report).toMatchObject({ stale: false, watches: { services: { connected: true } } })
  expect(report).not.toHaveProperty('reason')
})

test('a core that says that its own state is stale makes that of its nodes stale', () => {
  const { status, after } = reporting('core')
  status.watch('core').connected()
  status.watch('core').serverStaleSinceMs = performance.now()
  expect(after(1)).toMatchObject({
    stale: true,
    reason: expect.stringMatching(/^The state of the core is stale, as it said first at 2026-.*Z\.$/),
    watches: { core: { connected: true } },
  })
  status.watch('core').lost()
  expect(after(1)?.stale).toBe(false)
})

test('a resource that the server does not have is not missed', () => {
  const { status, after } = reporting('services', 'servicecidrs')
  status.watch('services').connected()
  status.watch('servicecidrs').isAbsent = true
  const report = after(10 * staleAfterMs)
  expect([report?.stale, Object.keys(report?.watches ?? {})]).toEqual([false, ['services']])
})

test('a state from the cache is stale at once', () => {
  const { status, after } = reporting('core')
  status.stateCache = { savedAtMs: startedAtUnixMs - 1000 }
  expect(after(1)).toMatchObject({
    stale: true,
    reason: 'The source has not answered yet: the state is that of the state cache, saved at 2026-11-16T11:59:59.000Z.',
    stateCacheSavedAt: '2026-11-16T11:59:59.000Z',
  })
})
