import { type Playground, startPlayground } from '@kpng/playground'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { demoService, describeChange, type EndpointView, type ServiceView } from './demo-service.js'

const at = (port: number, endpoints: readonly EndpointView[] = [], more: Partial<ServiceView> = {}): ServiceView => ({
  type: 'ClusterIP',
  target: { host: '127.96.1.1', port },
  endpoints,
  ...more,
})
const pod = (name: string, state: EndpointView['state'] = 'ready'): EndpointView => ({
  pod: name,
  address: `${name}:8080`,
  state,
})

describe('a change in words', () => {
  test.each<[ServiceView | undefined, ServiceView | undefined, string]>([
    [undefined, undefined, ''],
    [undefined, at(80, [pod('a'), pod('b')]), 'Service web at 127.96.1.1:80, 2 pods ready'],
    [at(80, [pod('a')]), undefined, 'Service web deleted'],
    [at(80), at(90), 'now at 127.96.1.1:90'],
    [at(80), at(80, [], { type: 'NodePort', nodePort: 30001 }), 'type NodePort, node port 30001'],
    [at(80, [pod('a')]), at(80, [pod('a', 'draining'), pod('b')]), 'a draining, b ready'],
    [at(80, [pod('a'), pod('b')]), at(80), '2 pods gone'],
    [at(80, [pod('a')]), at(80, [pod('a')]), ''],
    [at(80), at(80, [], { otherProxy: 'other' }), 'given to the proxy other'],
    [at(80, [], { otherProxy: 'other' }), at(80), 'given to the proxy kpng'],
    [at(80), { type: 'ClusterIP', endpoints: [], problem: 'it is headless' }, 'now cannot be called: it is headless'],
  ])('%#', (before, after, expected) => expect(describeChange(before, after)).toBe(expected))
})

describe('the demo Service, however it is edited', () => {
  let playground: Playground
  beforeAll(async () => {
    playground = await startPlayground({ runPods: false })
  })
  afterAll(() => playground.close())
  const apply = (spec: object) => {
    playground.objects.delete('Service', 'web')
    playground.objects.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { ...spec } })
    return demoService(playground.objects)
  }

  test('is called at its first TCP port', () => {
    expect(demoService(playground.objects)).toBeUndefined()
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'http', port: 9090 },
    ]
    expect(apply({ ports })).toMatchObject({ type: 'ClusterIP', target: { port: 9090 } })
    expect(apply({ type: 'NodePort', ports })).toMatchObject({ type: 'NodePort', nodePort: expect.any(Number) })
    expect(apply({ ports: [{ port: 53, protocol: 'UDP' }] })).toMatchObject({ problem: 'it has no TCP port' })
    expect(apply({ clusterIP: 'None', ports })?.problem).toMatch(/headless/)
    expect(apply({ type: 'ExternalName', externalName: 'a.b' })?.problem).toMatch(/ExternalName/)
  })
})
