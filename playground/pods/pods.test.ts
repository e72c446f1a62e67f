import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { get } from 'node:http'
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EndpointSlice, type Playground, type Pod, startPlayground } from '../index.js'
import { pod, service } from '../testing/client.js'
import { bindProblem } from './kubelet.js'
import { chooseNode } from './scheduler.js'

let playground: Playground
beforeAll(async () => {
  playground = await startPlayground({ maxGracePeriodSeconds: 1 })
})
afterAll(() => playground.close())

const isReady = (of: Readonly<Pod> | undefined) =>
  of?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
const ready = async (name: string) => {
  const found = await playground.objects.waitFor<Pod>('Pod', name, isReady)
  return found?.status?.podIP ?? ''
}

function http(host: string, port: number, path: string, headers = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, headers, agent: false }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve(text)
    }).on('error', reject)
  })
}

async function tcp(host: string, port: number, text: string): Promise<string> {
  const socket = connect(port, host)
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

async function udp(host: string, port: number, text: string): Promise<string> {
  const socket = createSocket('udp4')
  socket.send(text, port, host)
  const [message] = await once(socket, 'message')
  socket.close()
  return String(message)
}

describe('a pod', () => {
  it('runs an echo server on an address of its own: HTTP, plain TCP and UDP', async () => {
    const containers = [
      { name: 'c', image: 'any', ports: [{ containerPort: 8080 }, { containerPort: 8080, protocol: 'UDP' }] },
    ]
    playground.objects.apply(pod('echo', { app: 'echo' }, { containers }))
    const address = await ready('echo')
    expect(address).toMatch(/^127\.10\./)
    expect(await http(address, 8080, '/who')).toMatch(
      /^pod=echo namespace=default node=playground client=127\.0\.0\.1:\d+ path=\/who\n$/,
    )
    expect(JSON.parse(await http(address, 8080, '/', { accept: 'application/json' }))).toMatchObject({
      pod: 'echo',
      node: 'playground',
    })
    expect(await tcp(address, 8080, 'hello\nworld')).toBe('echo: hello\necho: world\n')
    expect(await tcp(address, 8080, 'hi')).toBe('echo: hi\n')
    expect(await udp(address, 8080, 'ping')).toBe('echo: ping')
  })
  it('has the status and conditions of a real one', async () => {
    await ready('echo')
    const { spec, status } = playground.objects.get<Pod>('Pod', 'echo') as Pod
    expect(spec.nodeName).toBe('playground')
    expect(status).toMatchObject({
      phase: 'Running',
      hostIP: '127.0.0.1',
      containerStatuses: [{ ready: true, state: { running: {} } }],
    })
    expect(status?.podIPs).toEqual([{ ip: status?.podIP }])
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual([
      'ContainersReady',
      'Initialized',
      'PodReadyToStartContainers',
      'PodScheduled',
      'Ready',
    ])
  })
  it('is made unready and ready again by a label', async () => {
    playground.objects.apply(service('echo', { selector: { app: 'echo' } }))
    const [current] = playground.objects.list<Pod>('Pod')
    const labelled = {
      ...structuredClone(current),
      metadata: { name: 'echo', labels: { app: 'echo', 'playground.kpng.io/ready': 'false' } },
    }
    playground.objects.apply({ ...labelled, status: undefined } as never)
    const unready = await playground.objects.waitFor<Pod>('Pod', 'echo', (of) => !isReady(of))
    expect(unready?.status?.conditions?.find(({ type }) => type === 'Ready')?.message).toBe(
      'playground.kpng.io/ready is "false"',
    )
    playground.objects.apply({
      ...labelled,
      status: undefined,
      metadata: { name: 'echo', labels: { app: 'echo' } },
    } as never)
    await ready('echo')
  })
  it('drains when it is deleted: still serving, then gone', async () => {
    const address = await ready('echo')
    const slice = () =>
      playground.objects.list<EndpointSlice>('EndpointSlice', { labelSelector: 'kubernetes.io/service-name=echo' })[0]
    playground.objects.delete('Pod', 'echo')
    expect(playground.objects.get('Pod', 'echo')?.metadata).toMatchObject({
      deletionGracePeriodSeconds: 1,
      deletionTimestamp: expect.any(String),
    })
    await playground.objects.waitFor<EndpointSlice>(
      'EndpointSlice',
      slice()?.metadata.name ?? '',
      (of) => of?.endpoints[0]?.conditions?.terminating === true,
    )
    expect(slice()?.endpoints[0]?.conditions).toEqual({ ready: false, serving: true, terminating: true })
    expect(await tcp(address, 8080, 'still there\n')).toBe('echo: still there\n')
    await playground.objects.waitFor('Pod', 'echo', (of) => of === undefined)
    await expect(tcp(address, 8080, 'x')).rejects.toThrow('ECONNREFUSED')
  })
  it('moves on when another process has its port, so that two playgrounds can run', async () => {
    const other = await startPlayground()
    other.objects.apply(pod('same'))
    playground.objects.apply(pod('same'))
    const [one, two] = [await ready('same'), (await other.objects.waitFor<Pod>('Pod', 'same', isReady))?.status?.podIP]
    expect(one).not.toBe(two)
    await other.close()
    playground.objects.delete('Pod', 'same', 'default', { gracePeriodSeconds: 0 })
  })
  it('that cannot listen fails with the reason, in its status and an Event', async () => {
    const taken = createServer().listen(18080, '127.0.0.1')
    await once(taken, 'listening')
    const small = await startPlayground({ podCidr: '127.0.0.0/30' })
    const containers = [{ name: 'c', image: 'any', ports: [{ containerPort: 18080 }] }]
    // The range has two addresses; the second pod gets the one where the port is taken.
    small.objects.apply(pod('first', {}, { containers }))
    await small.objects.waitFor<Pod>(
      'Pod',
      'first',
      (of) => of?.status?.phase === 'Running' || of?.status?.phase === 'Failed',
    )
    small.objects.apply(pod('second', {}, { containers }))
    await small.objects.waitFor<Pod>(
      'Pod',
      'second',
      (of) => of?.status?.phase === 'Running' || of?.status?.phase === 'Failed',
    )
    const failed = small.objects.list<Pod>('Pod').filter(({ status }) => status?.phase === 'Failed')
    expect(failed).toHaveLength(1)
    expect(failed[0]?.status?.message).toMatch(
      /cannot listen: port 18080 of 127\.0\.0\.1 is already in use; end what uses it/,
    )
    expect(small.objects.list('Event').some(({ reason }) => reason === 'FailedToListen')).toBe(true)
    await small.close()
    taken.close()
  })
  it.each([
    ['EADDRNOTAVAIL', 'macOS has only 127.0.0.1 on loopback'],
    ['EACCES', 'port 80 is below 1024 and needs root'],
  ])('%s is explained', (code, words) => {
    expect(bindProblem(Object.assign(new Error(code), { code, port: 80 }), '127.10.0.2')).toContain(words)
  })
})

describe('the scheduler', () => {
  const node = (name: string, spec: object = {}, labels = {}) =>
    ({ metadata: { name, labels }, spec, status: { conditions: [{ type: 'Ready', status: 'True' }] } }) as never
  const of = (spec: object = {}) => pod('p', {}, spec) as unknown as Pod
  it.each<[string, Pod, never[], string | undefined]>([
    ['the emptier one', of(), [node('full'), node('idle')], 'idle'],
    ['not a cordoned one', of(), [node('idle', { unschedulable: true }), node('full')], 'full'],
    ['not a tainted one', of(), [node('idle', { taints: [{ key: 'a', effect: 'NoSchedule' }] })], undefined],
    [
      'a tainted one that is tolerated',
      of({ tolerations: [{ operator: 'Exists' }] }),
      [node('idle', { taints: [{ key: 'a', effect: 'NoSchedule' }] })],
      'idle',
    ],
    [
      'one with the wanted labels',
      of({ nodeSelector: { disk: 'ssd' } }),
      [node('idle'), node('full', {}, { disk: 'ssd' })],
      'full',
    ],
  ])('chooses %s', (_, which, nodes, expected) => {
    expect(chooseNode(which, nodes, (name) => (name === 'full' ? 3 : 0))).toBe(expected)
  })
  it('says why a pod waits, and places it when a node comes', async () => {
    const empty = await startPlayground({ nodeNames: [] })
    empty.objects.apply(pod('lonely'))
    await empty.objects.waitFor<Pod>(
      'Pod',
      'lonely',
      (of) => of?.status?.conditions?.some(({ reason }) => reason === 'Unschedulable') ?? false,
    )
    const conditions = [{ type: 'Ready', status: 'True' }]
    empty.objects.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'late' }, status: { conditions } })
    const placed = await empty.objects.waitFor<Pod>('Pod', 'lonely', isReady)
    expect(placed?.spec.nodeName).toBe('late')
    await empty.close()
  })
})
