import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { until } from '../testing/recording.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

it('reads objects of several MB', async () => {
  const api = await startApi()
  api.set(widgetsPath, widget('big', { data: 'x'.repeat(3_000_000) }))
  const { handler } = await reflect(api.url)
  await until(() => handler.lists === 1)
  api.set(widgetsPath, widget('bigger', { data: 'é'.repeat(3_000_000) }))
  await until(() => handler.state.has('bigger'))
})

it('reads what a server compresses although it was not asked to', async () => {
  const api = await startApi()
  api.streaming = 'refuse'
  api.intercept = ({ kind }, response) => {
    if (kind !== 'list') return false
    const body = { metadata: { resourceVersion: '100' }, items: [widget('a')] }
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    response.end(gzipSync(JSON.stringify(body)))
    return true
  }
  const { handler } = await reflect(api.url)
  await until(() => handler.lists === 1)
  expect(handler.state.has('a')).toBe(true)
})

it('hands a list on in large batches, and changes as they come', async () => {
  const api = await startApi()
  for (let index = 0; index < 1_200; index++) api.set(widgetsPath, widget(`w${index}`, { data: 'x'.repeat(500) }))
  const { handler } = await reflect(api.url)
  await until(() => handler.lists === 1)
  expect(handler.calls.filter((call) => call === 'flush').length).toBeLessThanOrEqual(2)
  handler.calls.length = 0
  for (let index = 0; index < 10; index++) api.set(widgetsPath, widget(`new${index}`))
  await until(() => handler.state.has('new9'))
  expect(handler.calls.at(-1)).toBe('flush')
})

it('lets others run while it reads', async () => {
  const api = await startApi()
  // Small enough to arrive in a piece or two, slow enough to handle that the whole takes a third of a second.
  for (let index = 0; index < 300; index++) api.set(widgetsPath, widget(`w${index}`))
  const { handler } = await reflect(api.url)
  const set = handler.set.bind(handler)
  handler.set = (object) => {
    const until = performance.now() + 1
    while (performance.now() < until);
    set(object)
  }
  let turns = 0
  const count = () => {
    if (handler.calls.length > 0 && handler.lists === 0) turns++
  }
  const timer = setInterval(count, 1)
  await until(() => handler.lists === 1, 1)
  clearInterval(timer)
  expect(turns).toBeGreaterThan(15)
})
