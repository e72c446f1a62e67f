import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { keyFilter } from './globs.js'
import { serviceFromKubernetes } from './service.js'

const kept = { labels: keyFilter([]), annotations: keyFilter([]) }

function read(spec: object, status: object = {}, metadata: object = {}) {
  const reasons: string[] = []
  const object = { metadata: { namespace: 'default', name: 'web', ...metadata }, spec, status }
  return { service: serviceFromKubernetes(object, kept, (reason) => reasons.push(reason)), reasons }
}

const ipSet = (v4: string[], v6: string[] = []) => create(localv1.IPSetSchema, { v4, v6 })
const messages = <D extends DescMessage>(schema: D, items: MessageInitShape<D>[]) =>
  items.map((item) => create(schema, item))

describe('what a proxy has nothing to do for (checklist 5)', () => {
  it.each([
    ['ExternalName', { type: 'ExternalName', externalName: 'example.com', clusterIP: '10.0.0.1' }],
    ['an empty clusterIP', { type: 'ClusterIP', clusterIP: '' }],
    ['no clusterIP', { type: 'LoadBalancer', clusterIPs: [] }],
  ])('%s is left out without a complaint', (_, spec) => {
    expect(read(spec)).toEqual({ service: undefined, reasons: [] })
  })

  it.each([
    ['no object', 7],
    ['no metadata', {}],
    ['an odd name', { metadata: { name: 'a/b' } }],
    ['an odd namespace', { metadata: { name: 'a', namespace: 'x|y' } }],
  ])('%s is left out with a reason', (_, object) => {
    const reasons: string[] = []
    expect(serviceFromKubernetes(object, kept, (reason) => reasons.push(reason))).toBeUndefined()
    expect(reasons.join()).toContain('left out')
  })
})

describe('addresses', () => {
  it.each([
    ['clusterIP alone', { clusterIP: '10.0.0.1' }, ['10.0.0.1'], []],
    [
      'dual stack (checklist 13)',
      { clusterIP: 'fd00::1', clusterIPs: ['FD00::1', '10.0.0.1'] },
      ['10.0.0.1'],
      ['fd00::1'],
    ],
    ['one bad of two (checklist 11)', { clusterIPs: ['010.0.0.1', 'fd00::1'] }, [], ['fd00::1']],
  ])('%s', (_, spec, v4, v6) => {
    expect(read(spec).service?.ips).toMatchObject({ clusterIps: { v4, v6 }, headless: false })
  })

  it('headless is mapped, with its external IPs (checklist 1)', () => {
    const { service } = read({ clusterIP: 'None', clusterIPs: ['None'], externalIPs: ['1000::55', '10.0.0.55'] })
    expect(service?.ips).toEqual(
      create(localv1.ServiceIPsSchema, {
        clusterIps: {},
        externalIps: { v4: ['10.0.0.55'], v6: ['1000::55'] },
        headless: true,
      }),
    )
  })

  it('only bad cluster IPs: left out with reasons', () => {
    const { service, reasons } = read({ clusterIP: '10.0.0.300' })
    expect(service).toBeUndefined()
    expect(reasons[0]).toBe('spec.clusterIP has "10.0.0.300", which is not an IP address. The address is left out.')
    expect(reasons).toHaveLength(2)
  })

  it('external IPs, bad ones left out (checklist 11, 17)', () => {
    const { service, reasons } = read({ clusterIP: '10.0.0.1', externalIPs: ['2.2.2.2', 'x', '1.1.1.1', '1.1.1.1'] })
    expect(service?.ips?.externalIps).toEqual(ipSet(['1.1.1.1', '2.2.2.2']))
    expect(reasons).toHaveLength(1)
  })

  it('load-balancer IPs by ipMode; host names have none (checklist 16, 47)', () => {
    const ingress = [
      { ip: '2.2.2.2' },
      { ip: '1.1.1.1', ipMode: 'VIP' },
      { ip: '3.3.3.3', ipMode: 'Proxy' },
      { ip: '::3', ipMode: 'Proxy', hostname: 'x' },
      { hostname: 'lb.example.com' },
      { ip: 'bad' },
      { ip: '4.4.4.4', ipMode: 'Odd' },
    ]
    const { service, reasons } = read({ type: 'LoadBalancer', clusterIP: '10.0.0.1' }, { loadBalancer: { ingress } })
    expect(service?.ips?.loadBalancerIps).toEqual(ipSet(['1.1.1.1', '2.2.2.2']))
    expect(service?.ips?.loadBalancerProxyIps).toEqual(ipSet(['3.3.3.3'], ['::3']))
    expect(reasons).toHaveLength(2)
  })

  it('no ingress: the fields stay unset', () => {
    const { service } = read({ type: 'LoadBalancer', clusterIP: '10.0.0.1' }, { loadBalancer: {} })
    expect(service?.ips?.loadBalancerIps).toBeUndefined()
    expect(service?.ips?.loadBalancerProxyIps).toBeUndefined()
  })
})

describe('loadBalancerSourceRanges (checklist 45)', () => {
  const status = {
    loadBalancer: { ingress: [{ ip: '1.1.1.1' }, { ip: 'fd00::9' }, { ip: '3.3.3.3', ipMode: 'Proxy' }] },
  }

  it.each([
    ['none', undefined, []],
    ['blank', [' '], []],
    [
      'spaces trimmed, host bits cleared',
      [' 10.1.0.0/8 ', 'fd01::/16'],
      [
        { targetIps: { v4: ['1.1.1.1'] }, sourceRanges: ['10.0.0.0/8'] },
        { targetIps: { v6: ['fd00::9'] }, sourceRanges: ['fd01::/16'] },
      ],
    ],
    [
      'one family: the other stays open',
      ['10.0.0.0/8'],
      [{ targetIps: { v4: ['1.1.1.1'] }, sourceRanges: ['10.0.0.0/8'] }],
    ],
    ['everybody', ['0.0.0.0/0'], [{ targetIps: { v4: ['1.1.1.1'] }, sourceRanges: ['0.0.0.0/0'] }]],
    [
      'one bad: the other family does not stay open',
      ['10.0.0.0/8', 'x'],
      [
        { targetIps: { v4: ['1.1.1.1'] }, sourceRanges: ['10.0.0.0/8'] },
        { targetIps: { v6: ['fd00::9'] }, sourceRanges: [] },
      ],
    ],
    [
      'all bad: nobody, not everybody',
      ['x', '1.2.3.4'],
      [
        { targetIps: { v4: ['1.1.1.1'] }, sourceRanges: [] },
        { targetIps: { v6: ['fd00::9'] }, sourceRanges: [] },
      ],
    ],
  ])('%s', (_, loadBalancerSourceRanges, filters) => {
    const { service } = read({ type: 'LoadBalancer', clusterIP: '10.0.0.1', loadBalancerSourceRanges }, status)
    expect(service?.ipFilters).toEqual(messages(localv1.IPFilterSchema, filters))
  })

  it('reports each bad range', () => {
    const ranges = { loadBalancerSourceRanges: ['x', '1.2.3.4'] }
    expect(read({ type: 'LoadBalancer', clusterIP: '10.0.0.1', ...ranges }, status).reasons).toHaveLength(2)
  })

  it('without an address of the family there is nothing to guard', () => {
    const spec = { type: 'LoadBalancer', clusterIP: '10.0.0.1', loadBalancerSourceRanges: ['fd00::/8'] }
    expect(read(spec, { loadBalancer: { ingress: [{ ip: '1.1.1.1' }] } }).service?.ipFilters).toEqual([])
    expect(read(spec).service?.ipFilters).toEqual([])
  })

  it('counts for every type that has an address left over, as in kube-proxy', () => {
    const spec = { type: 'NodePort', clusterIP: '10.0.0.1', loadBalancerSourceRanges: ['10.0.0.0/8'] }
    const { service } = read(spec, status)
    expect(service?.ips?.loadBalancerIps?.v4).toEqual(['1.1.1.1'])
    expect(service?.ipFilters).toEqual(
      messages(localv1.IPFilterSchema, [{ targetIps: { v4: ['1.1.1.1'] }, sourceRanges: ['10.0.0.0/8'] }]),
    )
  })
})

describe('policies, affinity, health checks', () => {
  it.each([
    ['defaults', {}, false, false],
    ['internal Local (checklist 32)', { internalTrafficPolicy: 'Local' }, true, false],
    ['external Local (checklist 33)', { type: 'NodePort', externalTrafficPolicy: 'Local' }, false, true],
    ['external Local with external IPs', { externalIPs: ['1.1.1.1'], externalTrafficPolicy: 'Local' }, false, true],
    ['external Local, nothing external', { externalTrafficPolicy: 'Local' }, false, false],
    ['unknown policies', { type: 'NodePort', externalTrafficPolicy: 'X', internalTrafficPolicy: 'Y' }, false, false],
  ])('%s', (_, spec, internalTrafficToLocal, externalTrafficToLocal) => {
    expect(read({ clusterIP: '10.0.0.1', ...spec }).service).toMatchObject({
      internalTrafficToLocal,
      externalTrafficToLocal,
    })
  })

  it.each([
    ['None', {}, undefined, 0],
    ['ClientIP, default (checklist 38)', { sessionAffinity: 'ClientIP' }, 10_800, 0],
    [
      'ClientIP, given (checklist 37)',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } },
      60,
      0,
    ],
    [
      'ClientIP, odd',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      10_800,
      1,
    ],
    ['unknown', { sessionAffinity: 'Cookie' }, undefined, 1],
  ])('affinity %s', (_, spec, seconds, complaints) => {
    const { service, reasons } = read({ clusterIP: '10.0.0.1', ...spec })
    expect(service?.sessionAffinity.value?.timeoutSeconds).toBe(seconds)
    expect(reasons).toHaveLength(complaints)
  })

  it.each([
    ['LoadBalancer, Local (checklist 42)', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }, 32000],
    ['LoadBalancer, Cluster', { type: 'LoadBalancer' }, 0],
    ['NodePort, Local', { type: 'NodePort', externalTrafficPolicy: 'Local' }, 0],
  ])('healthCheckNodePort of %s', (_, spec, port) => {
    expect(read({ clusterIP: '10.0.0.1', healthCheckNodePort: 32000, ...spec }).service?.healthCheckNodePort).toBe(port)
  })
})

describe('metadata', () => {
  it.each([
    ['true', true],
    ['false', false],
    [undefined, false],
  ])('the annotation map-ip: %s', (value, mapIp) => {
    const annotations = value === undefined ? {} : { 'kpng.sigs.k8s.io/map-ip': value }
    expect(read({ clusterIP: '10.0.0.1' }, {}, { annotations }).service?.mapIp).toBe(mapIp)
  })

  it('keeps the labels and annotations asked for, and defaults type and namespace', () => {
    const object = {
      metadata: { name: 'web', labels: { a: '1', b: '2' }, annotations: { c: '3', d: '4' } },
      spec: { clusterIP: '10.0.0.1' },
    }
    const service = serviceFromKubernetes(object, { labels: keyFilter(['a']), annotations: keyFilter(['d']) }, () => {})
    expect(service).toMatchObject({
      namespace: 'default',
      type: 'ClusterIP',
      labels: { a: '1' },
      annotations: { d: '4' },
    })
  })

  it('a field of the wrong type costs only itself (checklist 11)', () => {
    const { service, reasons } = read(
      { clusterIP: '10.0.0.1', ports: 'http', externalIPs: 7 },
      { loadBalancer: [] },
      { labels: ['x'] },
    )
    expect(service?.ips?.clusterIps?.v4).toEqual(['10.0.0.1'])
    expect(reasons).toEqual([
      'metadata.labels is a list; a map was expected. It is ignored.',
      'spec.externalIPs is 7; a list was expected. It is ignored.',
      'status.loadBalancer is a list; a map was expected. It is ignored.',
      'spec.ports is "http"; a list was expected. It is ignored.',
    ])
  })
})
