import { silentLog } from '@kpng/api'
import { expect, it } from 'vitest'
import { until } from '../../testing/until.js'
import { Skips } from '../skips.js'
import { api, service, services, watch } from './testing/cluster.js'

it('writes the first list in large portions, and changes as they come', async () => {
  const server = await api()
  for (let index = 0; index < 1_200; index++) server.set(services, service(`s${index}`, { note: 'x'.repeat(500) }))
  const { store } = await watch(server)
  await until(() => store.synced)
  expect(store.revision).toBeGreaterThanOrEqual(2)
  expect(store.revision).toBeLessThanOrEqual(3)
  for (let index = 0; index < 10; index++) server.set(services, service(`new${index}`))
  await until(() => store.entry('default/new9') !== undefined)
})

/** Takes a millisecond for each object. */
class SlowSkips extends Skips {
  readings = 0

  override reading<T>(object: string, read: (report: (reason: string) => void) => T): T {
    const until = performance.now() + 1
    while (performance.now() < until);
    this.readings++
    return super.reading(object, read)
  }
}

it('lets others run while it reads', async () => {
  const server = await api()
  // Small enough to arrive in a piece or two, slow enough to parse that the whole takes a third of a second.
  for (let index = 0; index < 300; index++)
    server.set(services, { ...service(`s${index}`), spec: { type: 'ExternalName' } })
  const skips = new SlowSkips(silentLog)
  let turns = 0
  const timer = setInterval(() => {
    if (skips.readings > 0 && skips.readings < 300) turns++
  }, 1)
  const { store } = await watch(server, { skips })
  await until(() => store.synced)
  clearInterval(timer)
  expect(turns).toBeGreaterThan(15)
})
