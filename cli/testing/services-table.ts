import type { Verdict } from '@kpng/api'

// Broken and healthy Services as Kubernetes has them, and what every surface of kpng must say about each of them on the node `node-a`.

export type KubernetesObject = Readonly<Record<string, unknown>>

export interface Case {
  readonly name: string
  readonly objects: readonly KubernetesObject[]
  readonly verdict: Verdict
  /** In the headline, without the name. */
  readonly says: string
  /** That of the first finding, if there is one. */
  readonly code?: string
  /** Findings that need the objects of Kubernetes: lists do not have them. */
  readonly kubernetes?: string
  /** In the command of the finding with the code above, or of that of Kubernetes. */
  readonly command?: string
}

interface Endpoint {
  readonly ip: string
  readonly node?: string
  readonly ready?: boolean
  readonly serving?: boolean
  readonly terminating?: boolean
  readonly zoneHints?: readonly string[]
}

interface Given {
  readonly spec?: object
  readonly status?: object
  readonly labels?: object
  /** Undefined: no EndpointSlice. */
  readonly endpoints?: readonly Endpoint[]
  /** Of the slice. */
  readonly ports?: readonly object[]
  readonly family?: 'IPv4' | 'IPv6'
  /** In a second slice, which has no ports. */
  readonly portless?: readonly Endpoint[]
  readonly pods?: readonly {
    readonly labels?: object
    readonly ready?: boolean
    readonly ports?: readonly object[]
    readonly namespace?: string
    readonly waiting?: string
  }[]
  readonly policies?: readonly object[]
}

const http = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }
const here: Endpoint = { ip: '10.244.1.5', node: 'node-a' }
const there: Endpoint = { ip: '10.244.2.7', node: 'node-b' }
const unready = { ready: false, serving: false }
const leaving = { ready: false, serving: true, terminating: true }
const works = { endpoints: [here, there] }
const containerPort = { name: 'http', containerPort: 8080, protocol: 'TCP' }
const pod = { ports: [containerPort] }

let made = 0

function objectsOf(name: string, given: Given): KubernetesObject[] {
  made++
  const ip = `10.96.${made >> 8}.${made & 255}`
  const {
    spec = {},
    status = {},
    labels = {},
    endpoints,
    ports = [{ name: 'http', port: 8080, protocol: 'TCP' }],
  } = given
  const metadata = { namespace: 'default', resourceVersion: '1' }
  const selector = given.pods ? { selector: { app: name } } : {}
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { ...metadata, name, labels, uid: name } },
      spec: { type: 'ClusterIP', clusterIP: ip, clusterIPs: [ip], ports: [http], ...selector, ...spec },
      status,
    },
    ...(endpoints ? [sliceOf(`${name}-1`, name, endpoints, ports, given.family)] : []),
    ...(given.portless ? [sliceOf(`${name}-2`, name, given.portless, [], given.family)] : []),
    ...(given.pods ?? []).map(
      ({ labels: own = { app: name }, ready = true, ports: declared = [], namespace = 'default', waiting }, index) => ({
        ...{
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { ...metadata, namespace, name: `${name}-${index}`, labels: own },
        },
        spec: { containers: [{ name: 'main', image: 'any', ports: declared }] },
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
          ...(waiting === undefined ? {} : { containerStatuses: [{ state: { waiting: { reason: waiting } } }] }),
        },
      }),
    ),
    ...(given.policies ?? []).map((policy, index) => ({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', spec: policy },
      metadata: { ...metadata, name: `${name}-${index}` },
    })),
  ]
}

const sliceOf = (
  name: string,
  service: string,
  endpoints: readonly Endpoint[],
  ports: readonly object[],
  addressType = 'IPv4',
): KubernetesObject => ({
  ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType, ports },
  metadata: { namespace: 'default', resourceVersion: '1', name, labels: { 'kubernetes.io/service-name': service } },
  endpoints: endpoints.map(({ ip, node: nodeName = 'node-b', zoneHints, ...conditions }) => ({
    ...{ addresses: [ip], nodeName, conditions: { ready: true, ...conditions } },
    ...(zoneHints ? { hints: { forZones: zoneHints.map((zone) => ({ name: zone })) } } : {}),
  })),
})

type Expected = Omit<Case, 'name' | 'objects'>
const one = (name: string, given: Given, expected: Expected): Case => ({
  name,
  objects: objectsOf(name, given),
  ...expected,
})

const served = (name: string, given: Given, more: Partial<Expected> = {}): Case =>
  one(name, given, { verdict: 'serving', says: 'is served', ...more })
const refused = (name: string, given: Given, code: string, says: string, more: Partial<Expected> = {}): Case =>
  one(name, given, { verdict: 'refused', says: `does not answer on this node: ${says}`, code, ...more })
const dropped = (name: string, given: Given, says: string): Case =>
  one(name, given, { verdict: 'dropped', says, code: 'KPNG-S008', command: 'patch service' })
const notHere = (name: string, given: Given, says: string): Case =>
  one(name, given, { verdict: 'notServedHere', says, code: 'KPNG-S015' })

const local = { externalTrafficPolicy: 'Local', type: 'NodePort', ports: [{ ...http, nodePort: 30_100 }] }
const two = (first: object, second: object) => [
  { ...http, name: 'a', ...first },
  { ...http, name: 'b', port: 81, ...second },
]
const onlyA = [{ name: 'a', port: 8080, protocol: 'TCP' }]
const v6 = { clusterIP: 'fd00:96::10', clusterIPs: ['fd00:96::10'], ipFamilies: ['IPv6'] }
const noPort = (endpoints: readonly Endpoint[]): Given => ({ endpoints, ports: [] })

export const cases: readonly Case[] = [
  served('plain', works),
  served('one-endpoint', { endpoints: [there] }),
  served('unnamed-port', {
    spec: { ports: [{ port: 80, protocol: 'TCP', targetPort: 8080 }] },
    endpoints: [here],
    ports: [{ port: 8080, protocol: 'TCP' }],
  }),
  served('udp', {
    spec: { ports: [{ ...http, protocol: 'UDP' }] },
    endpoints: [here],
    ports: [{ name: 'http', port: 53, protocol: 'UDP' }],
  }),
  served('sctp-works', {
    spec: { ports: [{ ...http, protocol: 'SCTP' }] },
    endpoints: [here],
    ports: [{ name: 'http', port: 53, protocol: 'SCTP' }],
  }),
  served('two-ports', {
    spec: { ports: two({}, {}) },
    endpoints: [here],
    ports: [...onlyA, { name: 'b', port: 9, protocol: 'TCP' }],
  }),
  served('node-port', { spec: { type: 'NodePort', ports: [{ ...http, nodePort: 30_080 }] }, ...works }),
  served('load-balancer', {
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.40' }] } },
    ...works,
  }),
  served('external-ip', { spec: { externalIPs: ['192.0.2.50'] }, ...works }),
  served('affinity', { spec: { sessionAffinity: 'ClientIP' }, ...works }),
  served('v6', { spec: v6, family: 'IPv6', endpoints: [{ ip: 'fd00:244::5' }] }),
  served('local-and-here', { spec: local, ...works }),
  served('internal-local-and-here', { spec: { internalTrafficPolicy: 'Local' }, ...works }),
  served('hints-for-others', {
    endpoints: [
      { ...here, zoneHints: ['zone-a'] },
      { ...there, zoneHints: ['zone-b'] },
    ],
  }),
  served('by-hand', works),
  served('with-pods', { ...works, pods: [pod, pod] }),
  served('named-target', { spec: { ports: [{ ...http, targetPort: 'http' }] }, ...works, pods: [pod] }),
  served('undeclared-pods', { ...works, pods: [{}] }),
  served(
    'one-not-ready',
    { endpoints: [here, { ...there, ...unready }] },
    { says: 'is served on this node; 1 not ready of 2 endpoints', code: 'KPNG-S013' },
  ),
  served(
    'one-leaving',
    { endpoints: [here, { ...there, ...leaving }] },
    { says: '1 terminating of 2 endpoints', code: 'KPNG-S013' },
  ),
  served(
    'three-leaving',
    { endpoints: [here, there, ...[1, 2, 3].map((last) => ({ ip: `10.244.3.${last}`, ...leaving }))] },
    { says: '3 terminating of 5 endpoints', code: 'KPNG-S013' },
  ),
  served(
    'one-without-port',
    { endpoints: [here, { ...there, ...unready }, { ip: '10.244.2.8', ...leaving }] },
    { says: '1 not ready, 1 terminating of 3 endpoints', code: 'KPNG-S013' },
  ),
  served(
    'guarded-by-policy',
    { ...works, pods: [pod], policies: [{ podSelector: {} }] },
    { kubernetes: 'KPNG-K008', command: 'describe networkpolicy' },
  ),
  served('outgoing-policy', { ...works, pods: [pod], policies: [{ podSelector: {}, policyTypes: ['Egress'] }] }),
  served(
    'wrong-number',
    {
      spec: { ports: [{ ...http, targetPort: 9999 }] },
      endpoints: [here],
      ports: [{ name: 'http', port: 9999, protocol: 'TCP' }],
      pods: [pod],
    },
    { kubernetes: 'KPNG-K005', command: '"value":8080' },
  ),
  served(
    'wrong-number-of-two',
    {
      spec: { ports: [{ ...http, targetPort: 1 }] },
      ...works,
      pods: [{ ports: [containerPort, { name: 'b', containerPort: 8081, protocol: 'TCP' }] }],
    },
    { kubernetes: 'KPNG-K005', command: 'jsonpath' },
  ),
  served(
    'lb-without-address',
    { spec: { type: 'LoadBalancer' }, ...works },
    { kubernetes: 'KPNG-K007', command: 'describe service' },
  ),
  served(
    'published-unready',
    { spec: { publishNotReadyAddresses: true }, ...works, pods: [{ ...pod, ready: false }] },
    { kubernetes: 'KPNG-K009' },
  ),
  one(
    'draining',
    {
      endpoints: [
        { ...here, ...leaving },
        { ...there, ...leaving },
      ],
    },
    { verdict: 'draining', says: 'is served on this node, but only terminating endpoints are left', code: 'KPNG-S014' },
  ),

  refused('nothing', {}, 'KPNG-S002', 'no EndpointSlice of it lists an endpoint', { kubernetes: 'KPNG-K006' }),
  refused('empty-slice', { endpoints: [] }, 'KPNG-S002', 'no EndpointSlice of it lists an endpoint'),
  refused(
    'no-pod',
    { endpoints: [], pods: [{ labels: { app: 'something-else' } }] },
    'KPNG-S002',
    'no EndpointSlice of it',
    { kubernetes: 'KPNG-K001', command: '--show-labels' },
  ),
  refused(
    'typo',
    { endpoints: [], spec: { selector: { app: 'tyop' } }, pods: [{}] },
    'KPNG-S002',
    'no EndpointSlice of it',
    { kubernetes: 'KPNG-K001', command: 'set selector service typo app=typo' },
  ),
  refused(
    'typo-in-key',
    { endpoints: [], spec: { selector: { ap: 'typo-in-key' } }, pods: [{}] },
    'KPNG-S002',
    'no EndpointSlice of it',
    { kubernetes: 'KPNG-K001', command: 'app=typo-in-key' },
  ),
  refused('other-namespace', { endpoints: [], pods: [{ namespace: 'shop' }] }, 'KPNG-S002', 'no EndpointSlice of it', {
    kubernetes: 'KPNG-K002',
    command: 'get pods -A',
  }),
  refused('one-unready', { endpoints: [{ ...here, ...unready }] }, 'KPNG-S003', 'its only endpoint is not ready'),
  refused(
    'all-unready',
    {
      endpoints: [
        { ...here, ...unready },
        { ...there, ...unready },
      ],
    },
    'KPNG-S003',
    'none of its 2 endpoints is ready',
  ),
  refused(
    'unready-pods',
    { endpoints: [{ ...here, ...unready }], pods: [{ ...pod, ready: false }] },
    'KPNG-S003',
    'its only endpoint is not ready',
    { kubernetes: 'KPNG-K003', command: 'describe pod unready-pods-0' },
  ),
  refused(
    'crashing',
    { endpoints: [{ ...here, ...unready }], pods: [{ ...pod, ready: false, waiting: 'CrashLoopBackOff' }] },
    'KPNG-S003',
    'its only endpoint is not ready',
    { kubernetes: 'KPNG-K003' },
  ),
  refused(
    'gone-soon',
    { endpoints: [{ ...here, ready: false, serving: false, terminating: true }] },
    'KPNG-S003',
    'its only endpoint is not ready',
  ),
  refused(
    'other-port-name',
    { spec: { ports: [{ ...http, name: 'web' }] }, ...works },
    'KPNG-S004',
    'none of its 2 endpoints serves its ports: names or protocols differ',
  ),
  refused(
    'shop',
    { spec: { ports: [{ ...http, targetPort: 'web' }] }, ...noPort([here, there]), pods: [pod] },
    'KPNG-S004',
    'none of its 2 endpoints serves its ports',
    { kubernetes: 'KPNG-K004', command: '"value":"http"' },
  ),
  refused(
    'case-differs',
    {
      spec: { ports: [{ ...http, targetPort: 'HTTP' }] },
      ...noPort([here]),
      pods: [{ ports: [{ name: 'other', containerPort: 1, protocol: 'TCP' }, containerPort] }],
    },
    'KPNG-S004',
    'its only endpoint does not serve its ports',
    { kubernetes: 'KPNG-K004', command: '"value":"http"' },
  ),
  refused(
    'nameless-container',
    {
      spec: { ports: [{ ...http, targetPort: 'web' }] },
      ...noPort([here]),
      pods: [{ ports: [{ containerPort: 8080 }] }],
    },
    'KPNG-S004',
    'its only endpoint does not serve its ports',
    { kubernetes: 'KPNG-K004', command: 'jsonpath' },
  ),
  refused(
    'other-protocol',
    { spec: { ports: [{ ...http, protocol: 'UDP' }] }, ...works },
    'KPNG-S004',
    'none of its 2 endpoints serves its ports',
  ),
  refused(
    'two-dead-ports',
    { spec: { ports: two({}, {}) }, endpoints: [here] },
    'KPNG-S004',
    'its only endpoint does not serve its ports',
  ),
  refused(
    'mixed',
    { endpoints: [{ ...here, ...unready }], portless: [there] },
    'KPNG-S005',
    'none of its endpoints is used',
  ),
  refused(
    'only-v6',
    { family: 'IPv6', endpoints: [{ ip: 'fd00:244::6' }] },
    'KPNG-S007',
    'its only endpoint does not have an IPv4 address',
  ),
  refused(
    'only-v4',
    { spec: { ...v6, clusterIP: 'fd00:96::11', clusterIPs: ['fd00:96::11'] }, ...works },
    'KPNG-S007',
    'none of its 2 endpoints has an IPv6 address',
  ),
  refused(
    'link-local',
    { endpoints: [{ ip: '169.254.3.3' }] },
    'KPNG-S006',
    'endpoint 169.254.3.3 is not used because it is a link-local address',
  ),
  refused(
    'unspecified',
    { endpoints: [{ ip: '0.0.0.0' }] },
    'KPNG-S006',
    'endpoint 0.0.0.0 is not used because it is an unspecified address',
  ),
  refused(
    'loopback',
    { endpoints: [{ ip: '127.0.0.1' }] },
    'KPNG-S006',
    'endpoint 127.0.0.1 is not used because it is a loopback address',
  ),
  refused(
    'local-but-nothing',
    { spec: { ...local, ports: [{ ...http, nodePort: 30_101 }] }, endpoints: [] },
    'KPNG-S002',
    'no EndpointSlice of it lists an endpoint',
  ),

  one(
    'one-dead-port',
    { spec: { ports: two({}, {}) }, endpoints: [here], ports: onlyA },
    { verdict: 'partly', says: 'answers only in part: its only endpoint does not serve port b', code: 'KPNG-S004' },
  ),
  one(
    'dual-half',
    {
      spec: { clusterIPs: ['10.96.9.9', 'fd00:96::99'], clusterIP: '10.96.9.9', ipFamilies: ['IPv4', 'IPv6'] },
      endpoints: [here],
    },
    { verdict: 'partly', says: 'does not have an IPv6 address', code: 'KPNG-S007' },
  ),
  one('first-of-two', { spec: { externalIPs: ['192.0.2.60'] }, ...works }, { verdict: 'serving', says: 'is served' }),
  one(
    'second-of-two',
    { spec: { externalIPs: ['192.0.2.60'] }, ...works },
    {
      verdict: 'partly',
      says: 'answers only in part: 192.0.2.60:80/tcp belongs to Service default/first-of-two',
      code: 'KPNG-S010',
      command: 'custom-columns',
    },
  ),
  one(
    'thief',
    { spec: { externalIPs: ['10.96.0.1'] }, ...works },
    { verdict: 'partly', says: '10.96.0.1:80/tcp belongs to Service default/plain', code: 'KPNG-S010' },
  ),
  served(
    'link-local-external-ip',
    { spec: { externalIPs: ['169.254.7.7'] }, ...works },
    { says: 'address 169.254.7.7 is not served because it is a link-local address', code: 'KPNG-S012' },
  ),
  served(
    'one-bad-endpoint',
    { endpoints: [here, { ip: '169.254.3.4' }] },
    { says: 'endpoint 169.254.3.4 is not used', code: 'KPNG-S012' },
  ),
  dropped(
    'local-elsewhere',
    { spec: { ...local, ports: [{ ...http, nodePort: 30_102 }] }, endpoints: [there] },
    'externalTrafficPolicy is Local, and no endpoint on this node serves it',
  ),
  dropped(
    'internal-local-elsewhere',
    { spec: { internalTrafficPolicy: 'Local' }, endpoints: [there] },
    'internalTrafficPolicy is Local, and no endpoint on this node serves it',
  ),
  dropped(
    'local-lb-elsewhere',
    {
      spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.70' }] } },
      endpoints: [there],
    },
    'externalTrafficPolicy is Local',
  ),

  notHere(
    'headless',
    { spec: { clusterIP: 'None', clusterIPs: ['None'] }, ...works },
    'is not served by this kpng: it is headless',
  ),
  notHere(
    'other-proxy',
    { labels: { 'service.kubernetes.io/service-proxy-name': 'mesh' }, ...works },
    'so the proxy of that name serves it',
  ),
  notHere(
    'external-name',
    { spec: { type: 'ExternalName', externalName: 'example.com', clusterIP: '', clusterIPs: [] } },
    'ExternalName: a DNS name for example.com',
  ),
]

export const nodes: readonly KubernetesObject[] = ['a', 'b'].map((letter, index) => ({
  ...{ apiVersion: 'v1', kind: 'Node', spec: { podCIDRs: [`10.244.${index + 1}.0/24`] } },
  metadata: {
    name: `node-${letter}`,
    resourceVersion: '1',
    labels: { 'topology.kubernetes.io/zone': `zone-${letter}` },
  },
  status: { addresses: [{ type: 'InternalIP', address: `172.30.0.${index + 1}` }] },
}))
