import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EndpointSlice, type Endpoints, type Playground, startPlayground } from '../index.js'
import type { Pod, Service } from '../objects/kinds.js'
import { pod, service } from '../testing/client.js'
import { desiredGroups } from './desired-endpoints.js'
import { maxEndpointsPerSlice, planSlices } from './slice-plan.js'

const podWith = (name: string, changes: object = {}, spec: object = {}): Pod =>
  ({
    ...pod(name, {}, spec),
    metadata: { name, namespace: 'default', uid: `uid-${name}`, ...changes },
    status: {
      phase: 'Running',
      podIPs: [{ ip: `127.10.0.${name.slice(1)}` }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }) as unknown as Pod
const serviceOf = (spec: object = {}): Service =>
  ({
    ...service('web', spec),
    spec: { ipFamilies: ['IPv4'], ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }], ...spec },
  }) as unknown as Service
const node = (zone?: string) => () =>
  ({ metadata: { name: 'n', labels: zone ? { 'topology.kubernetes.io/zone': zone } : {} } }) as never

describe('what the slices of a Service should hold', () => {
  const conditions = (service: Service, of: Pod) => desiredGroups(service, [of], node())[0]?.endpoints[0]?.conditions
  const unready = {
    ...podWith('p1'),
    status: { ...podWith('p1').status, conditions: [{ type: 'Ready', status: 'False' as const }] },
  } as Pod
  it.each([
    ['a ready pod', serviceOf(), podWith('p1'), { ready: true, serving: true, terminating: false }],
    ['an unready pod', serviceOf(), unready, { ready: false, serving: false, terminating: false }],
    [
      'a draining pod',
      serviceOf(),
      podWith('p1', { deletionTimestamp: 'x' }),
      { ready: false, serving: true, terminating: true },
    ],
    [
      'publishNotReadyAddresses',
      serviceOf({ publishNotReadyAddresses: true }),
      unready,
      { ready: true, serving: false, terminating: false },
    ],
  ])('%s', (_, of, which, expected) => {
    expect(conditions(of, which)).toEqual(expected)
  })
  it('named target ports go by the pod, and pods with other numbers to other slices', () => {
    const named = (name: string, port: number) =>
      podWith(name, {}, { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: port }] }] })
    const of = serviceOf({ ports: [{ port: 80, name: 'web', targetPort: 'http', protocol: 'TCP' }] })
    const groups = desiredGroups(of, [named('p1', 8080), named('p2', 9090), named('p3', 8080)], node())
    expect(groups.map(({ ports, endpoints }) => [ports[0]?.port, endpoints.length])).toEqual([
      [8080, 2],
      [9090, 1],
    ])
  })
  it('a pod without address or that has ended does not count', () => {
    const ended = { ...podWith('p2'), status: { ...podWith('p2').status, phase: 'Failed' as const } } as Pod
    const homeless = { ...podWith('p3'), status: { phase: 'Pending' as const } } as Pod
    expect(desiredGroups(serviceOf(), [ended, homeless], node())).toEqual([])
  })
  it.each([
    ['PreferClose', { forZones: [{ name: 'z' }] }],
    ['PreferSameZone', { forZones: [{ name: 'z' }] }],
    ['PreferSameNode', { forZones: [{ name: 'z' }], forNodes: [{ name: 'n' }] }],
    [undefined, undefined],
  ])('hints for %s', (trafficDistribution, hints) => {
    const groups = desiredGroups(serviceOf({ trafficDistribution }), [podWith('p1', {}, { nodeName: 'n' })], node('z'))
    expect(groups[0]?.endpoints[0]).toMatchObject({ nodeName: 'n', zone: 'z' })
    expect(groups[0]?.endpoints[0]?.hints).toEqual(hints)
  })
})

describe('the plan writes as little as it can', () => {
  const group = (count: number) => ({
    addressType: 'IPv4' as const,
    ports: [{ name: '', port: 80, protocol: 'TCP' as const }],
    endpoints: Array.from({ length: count }, (_, index) => ({
      addresses: [`10.0.${index >> 8}.${index & 255}`],
      targetRef: { uid: `u${index}` },
    })),
  })
  const slicesFrom = (count: number): EndpointSlice[] =>
    planSlices([], [group(count)]).create.map((slice, index) => ({
      apiVersion: '',
      kind: '',
      metadata: { name: `s${index}` },
      ...slice,
    }))
  it(`at most ${maxEndpointsPerSlice} in a slice`, () => {
    expect(planSlices([], [group(250)]).create.map(({ endpoints }) => endpoints.length)).toEqual([100, 100, 50])
  })
  it('nothing changed: nothing written', () => {
    expect(planSlices(slicesFrom(250), [group(250)])).toEqual({ create: [], update: [], remove: [] })
  })
  it('one more: one slice written', () => {
    const plan = planSlices(slicesFrom(250), [group(251)])
    expect([plan.create.length, plan.update.length, plan.remove.length]).toEqual([0, 1, 0])
  })
  it('one less: one slice written, the others untouched', () => {
    const less = group(250)
    less.endpoints.splice(7, 1)
    const plan = planSlices(slicesFrom(250), [less])
    expect(plan.update.map(({ slice }) => slice.metadata.name)).toEqual(['s0'])
  })
  it('other ports: new slices, the old ones go', () => {
    const plan = planSlices(slicesFrom(10), [{ ...group(10), ports: [{ name: '', port: 81, protocol: 'TCP' }] }])
    expect([plan.create.length, plan.update.length, plan.remove.length]).toEqual([1, 0, 1])
  })
})

describe('the controllers', () => {
  let playground: Playground
  beforeAll(async () => {
    playground = await startPlayground({
      runPods: false,
      nodeNames: ['a', 'b'],
      zones: { a: 'east', b: 'west' },
      serviceCidrs: ['10.96.0.0/16', 'fd00::/112'],
    })
  })
  afterAll(() => playground.close())
  const settle = () => new Promise((resolve) => setTimeout(resolve, 30))
  const running = (ip: string, ...more: string[]) => ({
    phase: 'Running',
    podIP: ip,
    podIPs: [ip, ...more].map((address) => ({ ip: address })),
    conditions: [{ type: 'Ready', status: 'True' }],
  })
  const slices = (name: string) =>
    playground.objects.list<EndpointSlice>('EndpointSlice', { labelSelector: `kubernetes.io/service-name=${name}` })

  it('follow Services, pods and nodes, and clean up', async () => {
    playground.objects.apply(
      service('web', { selector: { app: 'web' }, ipFamilyPolicy: 'PreferDualStack' }, { labels: { team: 'x' } }),
    )
    await settle()
    expect(
      slices('web')
        .map(({ addressType, endpoints }) => [addressType, endpoints])
        .sort(),
    ).toEqual([
      ['IPv4', []],
      ['IPv6', []],
    ])
    playground.objects.apply({
      ...pod('w1', { app: 'web' }, { nodeName: 'a' }),
      status: running('10.1.0.1', 'fd01::1'),
    })
    playground.objects.apply({ ...pod('w2', { app: 'web' }, { nodeName: 'b' }), status: running('10.1.0.2') })
    await settle()
    const four = slices('web').find(({ addressType }) => addressType === 'IPv4')
    expect(four?.metadata).toMatchObject({
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        team: 'x',
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': expect.stringMatching(/Z$/) },
      ownerReferences: [{ kind: 'Service', name: 'web', controller: true }],
    })
    expect(four?.endpoints.map(({ addresses, zone }) => [addresses[0], zone])).toEqual([
      ['10.1.0.1', 'east'],
      ['10.1.0.2', 'west'],
    ])
    expect(slices('web').find(({ addressType }) => addressType === 'IPv6')?.endpoints).toMatchObject([
      { addresses: ['fd01::1'] },
    ])
    expect(playground.objects.get<Endpoints>('Endpoints', 'web')?.subsets).toMatchObject([
      { addresses: [{ ip: '10.1.0.1' }, { ip: '10.1.0.2' }] },
    ])

    playground.objects.delete('Service', 'web')
    await settle()
    expect(slices('web')).toEqual([])
    expect(playground.objects.get('Endpoints', 'web')).toBeUndefined()
  })
  it('write once for one changed pod, and not at all for a change that does not matter', async () => {
    playground.objects.apply(service('calm', { selector: { app: 'web' } }))
    await settle()
    const before = playground.revision
    playground.objects.apply({
      ...pod('w1', { app: 'web', other: 'label' }, { nodeName: 'a' }),
      status: running('10.1.0.1', 'fd01::1'),
    })
    await settle()
    expect(playground.revision).toBe(before + 1)
  })
  it('mark slices of headless Services, leave Services without selector alone', async () => {
    playground.objects.apply(service('head', { selector: { app: 'web' }, clusterIP: 'None' }))
    playground.objects.apply(service('manual'))
    await settle()
    expect(slices('head')[0]?.metadata.labels).toHaveProperty(['service.kubernetes.io/headless'], '')
    expect(slices('manual')).toEqual([])
  })
  it('put a slice right that somebody deleted', async () => {
    const [slice] = slices('calm')
    playground.objects.delete('EndpointSlice', slice?.metadata.name ?? '')
    await settle()
    expect(slices('calm')).toHaveLength(1)
  })
})
