import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { toGoJson } from './go-json.js'
import { localv1 } from './index.js'

// The lines that Go kpng's kpng-json printed, byte by byte.

const service = (init: Parameters<typeof create<typeof localv1.ServiceSchema>>[1]) =>
  create(localv1.ServiceSchema, init)
const endpoint = (init: Parameters<typeof create<typeof localv1.EndpointSchema>>[1]) =>
  create(localv1.EndpointSchema, init)
const both = { internal: true, external: true, cluster: true }

test('a service with a local and a remote endpoint', () => {
  const line = toGoJson({
    service: service({
      namespace: 'default',
      name: 'web',
      type: 'ClusterIP',
      ips: { clusterIps: { v4: ['10.96.0.10'] }, externalIps: {} },
      ports: [{ name: 'http', protocol: 1, port: 80, targetPort: 8080, servedFamilies: { v4: true } }],
    }),
    endpoints: [
      endpoint({
        ips: { v4: ['10.244.1.5'] },
        local: true,
        portOverrides: [{ name: 'http', port: 8080 }],
        scopes: both,
      }),
      endpoint({ ips: { v4: ['10.244.2.6'] }, portOverrides: [{ name: 'http', port: 8080 }], scopes: both }),
    ],
  })
  expect(line).toBe(
    '{"Service":{"Namespace":"default","Name":"web","Type":"ClusterIP","IPs":{"ClusterIPs":{"V4":["10.96.0.10"]},"ExternalIPs":{}},"Ports":[{"Name":"http","Protocol":1,"Port":80,"TargetPort":8080}],"SessionAffinity":null},"Endpoints":[{"IPs":{"V4":["10.244.1.5"]},"Local":true,"PortOverrides":[{"Name":"http","Port":8080}],"Scopes":{"Internal":true,"External":true}},{"IPs":{"V4":["10.244.2.6"]},"PortOverrides":[{"Name":"http","Port":8080}],"Scopes":{"Internal":true,"External":true}}]}',
  )
})

test('a service without endpoints', () => {
  const line = toGoJson({
    service: service({
      namespace: 'default',
      name: 'kubernetes',
      type: 'ClusterIP',
      ips: { clusterIps: { v4: ['10.96.0.1'] }, externalIps: {} },
      ports: [{ name: 'https', protocol: 1, port: 443, targetPort: 6443 }],
    }),
    endpoints: [],
  })
  expect(line).toBe(
    '{"Service":{"Namespace":"default","Name":"kubernetes","Type":"ClusterIP","IPs":{"ClusterIPs":{"V4":["10.96.0.1"]},"ExternalIPs":{}},"Ports":[{"Name":"https","Protocol":1,"Port":443,"TargetPort":6443}],"SessionAffinity":null},"Endpoints":null}',
  )
})

test('a headless service with external IPs of both families', () => {
  const line = toGoJson({
    service: service({
      namespace: 'default',
      name: 'kpng-example',
      type: 'ClusterIP',
      ips: { clusterIps: {}, externalIps: { v4: ['10.0.0.55'], v6: ['1000::55'] }, headless: true },
      ports: [{ protocol: 1, port: 6000, targetPort: 6000 }],
    }),
    endpoints: [endpoint({ ips: { v6: ['1100::202'] }, local: true }), endpoint({ ips: { v4: ['11.0.1.2'] } })],
  })
  expect(line).toBe(
    '{"Service":{"Namespace":"default","Name":"kpng-example","Type":"ClusterIP","IPs":{"ClusterIPs":{},"ExternalIPs":{"V4":["10.0.0.55"],"V6":["1000::55"]},"Headless":true},"Ports":[{"Protocol":1,"Port":6000,"TargetPort":6000}],"SessionAffinity":null},"Endpoints":[{"IPs":{"V6":["1100::202"]},"Local":true},{"IPs":{"V4":["11.0.1.2"]}}]}',
  )
})

test('every other field has the name and the place that Go gave it', () => {
  const line = toGoJson({
    service: service({
      namespace: 'a',
      name: 'b',
      type: 'LoadBalancer',
      labels: { z: '1', a: '2' },
      annotations: { note: 'x' },
      ips: { loadBalancerIps: { v4: ['192.0.2.1'] } },
      ipFilters: [{ targetIps: { v4: ['192.0.2.1'] }, sourceRanges: ['10.0.0.0/8'] }],
      mapIp: true,
      ports: [{ protocol: 2, port: 53, nodePort: 30053, targetPortName: 'dns' }],
      externalTrafficToLocal: true,
      sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 10800 } },
      internalTrafficToLocal: true,
      healthCheckNodePort: 30999,
    }),
    endpoints: [endpoint({ hostname: 'h', conditions: { serving: true, terminating: true } })],
  })
  expect(line).toBe(
    '{"Service":{"Namespace":"a","Name":"b","Type":"LoadBalancer","Labels":{"a":"2","z":"1"},"Annotations":{"note":"x"},"IPs":{"LoadBalancerIPs":{"V4":["192.0.2.1"]}},"IPFilters":[{"TargetIPs":{"V4":["192.0.2.1"]},"SourceRanges":["10.0.0.0/8"]}],"MapIP":true,"Ports":[{"Protocol":2,"Port":53,"NodePort":30053,"TargetPortName":"dns"}],"ExternalTrafficToLocal":true,"SessionAffinity":{"ClientIP":{"TimeoutSeconds":10800}},"InternalTrafficToLocal":true,"HealthCheckNodePort":30999},"Endpoints":[{"Hostname":"h","Conditions":{"Serving":true,"Terminating":true}}]}',
  )
})

describe('what kpng adds comes after what Go kpng had, and only where it says more', () => {
  const port = { name: 'http', protocol: 1, port: 80 } as const
  const withEndpoints = (endpoints: Parameters<typeof endpoint>[0][], served?: { v4?: boolean; v6?: boolean }) =>
    toGoJson({
      service: service({ name: 'a', ports: [{ ...port, ...(served && { servedFamilies: served }) }] }),
      endpoints: endpoints.map(endpoint),
    })
  const [all, none] = [both, { internal: false, external: false, cluster: false }]

  test.each([
    ['all traffic', all, '{"Internal":true,"External":true}'],
    ['none: it is draining', none, '{}'],
    ['only traffic of the cluster to external addresses', { ...none, cluster: true }, '{"Cluster":true}'],
    ['all but traffic from outside', { ...all, external: false }, '{"Internal":true,"Cluster":true}'],
    ['only traffic from outside', { ...none, external: true }, '{"External":true,"Cluster":false}'],
  ])('an endpoint for %s', (_, scopes, expected) => {
    expect(withEndpoints([{ scopes }])).toContain(`"Scopes":${expected}}`)
  })

  test.each<[string, Parameters<typeof endpoint>[0][], { v4?: boolean; v6?: boolean } | undefined, string]>([
    ['none on this node', [], { v4: true }, ',"ServedFamilies":{"V4":true}'],
    ['none anywhere', [], {}, ''],
    ['none on this node, and nobody says of others', [], undefined, ''],
    ['one on this node', [{ ips: { v4: ['10.0.0.1'] }, scopes: all }], { v4: true }, ''],
    [
      'only a draining one on this node',
      [{ ips: { v4: ['10.0.0.1'] }, scopes: none }],
      { v4: true },
      ',"ServedFamilies":{"V4":true}',
    ],
    [
      'one family on this node',
      [{ ips: { v4: ['10.0.0.1'] }, scopes: all }],
      { v4: true, v6: true },
      ',"ServedFamilies":{"V4":true,"V6":true}',
    ],
    [
      'one on this node with other ports',
      [{ ips: { v4: ['10.0.0.1'] }, scopes: all, portOverrides: [{ name: 'x', port: 1 }] }],
      { v4: true },
      ',"ServedFamilies":{"V4":true}',
    ],
  ])('endpoints: %s', (_, endpoints, served, expected) => {
    expect(withEndpoints(endpoints, served)).toContain(`"Port":80${expected}}]`)
  })

  test.each([
    ['of the Service', 1, ''],
    ['another than the Service', 2, ',"Protocol":2'],
    ['unknown', undefined, ''],
  ])('the protocol of an endpoint is %s', (_, protocol, expected) => {
    const portOverrides = [{ name: 'http', port: 8080, ...(protocol && { protocol }) }]
    expect(withEndpoints([{ portOverrides }])).toContain(`"Port":8080${expected}}]`)
  })
})
