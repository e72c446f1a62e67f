import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { EventRecorder, type EventRecorderOptions } from './event-recorder.js'

let posts: [string, Record<string, unknown>][]
let lines: string[]
let stop: AbortController
beforeEach(() => {
  posts = []
  stop = new AbortController()
})
afterEach(() => stop.abort())

function make(options: Partial<EventRecorderOptions> = {}) {
  const recorded = recordingLog()
  lines = recorded.lines
  return new EventRecorder({
    nodeName: 'worker-1',
    post: async (path, body) => {
      posts.push([path, body as Record<string, unknown>])
    },
    log: recorded.log,
    signal: stop.signal,
    now: () => Date.parse('2026-01-02T03:04:05.678Z'),
    retryMs: 1,
    tries: 3,
    ...options,
  })
}

test('Starting is an Event on the Node, as kube-proxy sends it', async () => {
  await make().starting()
  expect(posts).toEqual([
    [
      '/apis/events.k8s.io/v1/namespaces/default/events',
      {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name: expect.stringMatching(/^worker-1\.[0-9a-f]+$/), namespace: 'default' },
        eventTime: '2026-01-02T03:04:05.678000Z',
        reportingController: 'kpng',
        reportingInstance: 'kpng-worker-1',
        action: 'StartKubeProxy',
        reason: 'Starting',
        regarding: { apiVersion: 'v1', kind: 'Node', name: 'worker-1', uid: 'worker-1' },
        note: '',
        type: 'Normal',
      },
    ],
  ])
})

test('failures are warnings, on the Node or on the Service in its namespace', async () => {
  const recorder = make()
  await recorder.serverFailed('FailedToStartProxierHealthcheck', 'in use')
  await recorder.serviceFailed({
    namespace: 'shop',
    name: 'web',
    reason: 'FailedToStartServiceHealthcheck',
    action: 'Listen',
    note: 'x'.repeat(5000),
  })
  expect(posts.map(([path]) => path.split('/')[5])).toEqual(['default', 'shop'])
  expect(posts.map(([, { type, reason }]) => `${type} ${reason}`)).toEqual([
    'Warning FailedToStartProxierHealthcheck',
    'Warning FailedToStartServiceHealthcheck',
  ])
  expect(posts[1]?.[1]).toMatchObject({ regarding: { kind: 'Service', namespace: 'shop', name: 'web' } })
  expect(posts[1]?.[1].note).toHaveLength(1024)
})

test('two Events of one moment have two names', async () => {
  const recorder = make()
  await Promise.all([recorder.starting(), recorder.starting()])
  expect(new Set(posts.map(([, { metadata }]) => (metadata as { name: string }).name)).size).toBe(2)
})

describe('an API server that does not take it', () => {
  const failing = (failures: number) => {
    let count = 0
    const post = async () => {
      count++
      if (count <= failures) throw new Error('forbidden')
    }
    return { post, count: () => count }
  }

  test('is tried again, with the same Event', async () => {
    const { post, count } = failing(2)
    await make({ post }).starting()
    expect(count()).toBe(3)
    expect(lines.filter((line) => line.startsWith('W'))).toEqual([])
  })

  test('is given up in the end, and nothing fails', async () => {
    const { post, count } = failing(Number.POSITIVE_INFINITY)
    await make({ post }).starting()
    expect(count()).toBe(3)
    expect(lines.filter((line) => line.startsWith('W'))).toEqual([expect.stringContaining('forbidden')])
  })

  test('is left alone after the end', async () => {
    const { post, count } = failing(Number.POSITIVE_INFINITY)
    const recording = make({ post, retryMs: 60_000 }).starting()
    await new Promise((resolve) => setTimeout(resolve, 20))
    stop.abort()
    await recording
    expect(count()).toBe(1)
  })
})
