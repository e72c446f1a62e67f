import { silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import type { Context } from './context.js'
import { runPipeline } from './pipeline.js'
import type { SourceCommand } from './sources/source.js'

const context = { log: silentLog, signal: new AbortController().signal } as unknown as Context

const sourceThat = (run: SourceCommand['run']): SourceCommand => ({ name: 'test', run }) as unknown as SourceCommand

test.each([
  ['fails', () => Promise.reject(new Error('no cluster')), 'no cluster'],
  ['ends', () => Promise.resolve(), undefined],
] as const)('when the source %s, the sink is ended and waited for', async (_, run, error) => {
  let closed = false
  const running = runPipeline(
    sourceThat(run),
    {},
    async (_store, { signal }, ready) => {
      ready()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await new Promise((resolve) => setTimeout(resolve, 20))
      closed = true
    },
    context,
  )
  if (error) await expect(running).rejects.toThrow(error)
  else await running
  expect(closed).toBe(true)
})

test('when the sink cannot start, its error is told and the source is not waited for in vain', async () => {
  const until = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  const source = sourceThat((_flags, _state, { signal }) => until(signal))
  const failing = () => Promise.reject(new Error('the port is in use'))
  await expect(runPipeline(source, {}, failing, context)).rejects.toThrow('the port is in use')
})
