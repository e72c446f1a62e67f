import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

it('reads objects of several MB', async () => {
  const api = await startApi()
  api.set(widgetsPath, widget('big', { data: 'x'.repeat(3_000_000) }))
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  api.set(widgetsPath, widget('bigger', { data: 'é'.repeat(3_000_000) }))
  await until(() => recorder.state.has('bigger'))
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
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(recorder.state.has('a')).toBe(true)
})
