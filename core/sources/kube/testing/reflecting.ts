import { WatchStatus } from '@kpng/client'
import { onTestFinished } from 'vitest'
import { type KubeConnection, loadConnection } from '../client/index.js'
import { batches, type ReflectorTiming, type Resource } from '../reflector/index.js'
import { FakeApi } from './fake-api.js'
import { BatchRecorder, quick, recordingLog } from './recording.js'

export const widgets: Resource = { group: 'example.com', version: 'v1', name: 'widgets' }
export const widgetsPath = '/apis/example.com/v1/widgets'

export const widget = (name: string, fields: Record<string, unknown> = {}) => ({
  metadata: { name, namespace: 'default' },
  ...fields,
})

/** A connection to a server without credentials. */
export async function connectTo(server: string): Promise<KubeConnection> {
  const connection = await loadConnection({ server, env: {}, home: '/nonexistent' })
  onTestFinished(() => connection.close())
  return connection
}

/** How long after a time the request of this number came. */
export const requestedAfterMs = (api: FakeApi, number: number, startedAt: number): number =>
  (api.requests[number]?.atMs ?? 0) - startedAt

export async function startApi(): Promise<FakeApi> {
  const api = await new FakeApi().start()
  api.collections.add(widgetsPath)
  onTestFinished(() => api.stop())
  return api
}

/** A reflector that runs against a server until the test is over. */
export async function reflect(
  server: string,
  options: { resource?: Resource; timing?: Partial<ReflectorTiming>; pageSize?: number } = {},
) {
  const connection = await connectTo(server)
  const recorder = new BatchRecorder()
  const log = recordingLog()
  const events: string[] = []
  const status = new WatchStatus('widgets')
  const stop = new AbortController()
  const reflected = batches({
    connection,
    resource: options.resource ?? widgets,
    log,
    signal: stop.signal,
    onEvent: (type) => events.push(type),
    status,
    timing: { ...quick, ...options.timing },
    ...(options.pageSize && { pageSize: options.pageSize }),
  })
  const record = async () => {
    for await (const batch of reflected) recorder.add(batch)
  }
  const done = record()
  onTestFinished(async () => {
    stop.abort()
    await done
  })
  return { recorder, log, events, status, stop, done }
}
