import { silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import type { Context } from './context.js'
import { runPipeline } from './pipeline.js'
import type { SourceCommand } from './sources/source.js'

const context = { log: silentLog, signal: new AbortController().signal } as unknown as Context

const sourceThat = (start: SourceCommand['start']): SourceCommand =>
  ({ name: 'test', start }) as unknown as SourceCommand

test.each([
  ['fails', () => Promise.reject(new Error('no cluster')), 'no cluster'],
  ['ends', () => Promise.resolve(), undefined],
] as const)('when the source %s later, the sink is stopped and awaited', async (_, run, error) => {
  let closed = false
  const running = runPipeline(
    sourceThat(async () => ({ ended: run() })),
    {},
    async (_store, { signal }) => {
      await new Promise((resolve) => {
        if (signal.aborted) resolve(undefined)
        signal.addEventListener('abort', resolve)
      })
      closed = true
    },
    context,
  )
  if (error) await expect(running).rejects.toThrow(error)
  else await running
  expect(closed).toBe(true)
})

test('when the source cannot start, the sink is not started', async () => {
  let started = false
  const sink = async () => {
    started = true
  }
  const source = sourceThat(() => Promise.reject(new Error('no such file')))
  await expect(runPipeline(source, {}, sink, context)).rejects.toThrow('no such file')
  expect(started).toBe(false)
})

test('when the sink cannot start, its error is reported and the source is stopped', async () => {
  const until = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  const source = sourceThat(async (_flags, _state, { signal }) => ({ ended: until(signal) }))
  const failing = () => Promise.reject(new Error('the port is in use'))
  await expect(runPipeline(source, {}, failing, context)).rejects.toThrow('the port is in use')
})
