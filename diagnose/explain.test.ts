import type { EndpointAnswer, KubernetesFacts, ServiceAnswer } from '@kpng/api'
import type { HeldFrontend } from '@kpng/client'
import { allFeatures, clientOf, FrontendTable } from '@kpng/dataplane'
import { describe, expect, test } from 'vitest'
import { endpoint, ips, type TestService, tcp, udp, view } from '../dataplane/testing/objects.js'
import { explain, withProbes } from './explain.js'
import { found as finding } from './findings.js'
import { parseClient, parseQuestion } from './question.js'
import { columns, explanationText } from './text.js'

const web: TestService = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.10'), loadBalancerIps: ips('192.0.2.10') },
  ports: [tcp(80, { name: 'http', nodePort: 30080, targetPort: 8080 })],
  endpoints: [endpoint('10.244.1.5', { local: true }), endpoint('10.244.2.7')],
}
const broken: TestService = { name: 'broken', ips: { clusterIps: ips('10.96.0.11') }, ports: [tcp(80)], endpoints: [] }

const slice = (ip: string, more: Partial<EndpointAnswer> = {}): EndpointAnswer => ({
  ...{ ips: [ip], ports: [8080], pod: `web-${ip.at(-1)}`, node: 'b', zone: 'z', slice: 'web-1' },
  ...{ ready: true, serving: true, terminating: false, isLocal: false, scopes: ['internal', 'external', 'cluster'] },
  ...more,
})

const nothingInKubernetes: KubernetesFacts = {
  ...{ from: 'a test', pods: { value: [] }, otherPods: { value: [] }, networkPolicies: { value: [] } },
}

function ask(
  text: string,
  services: readonly TestService[],
  { from, answer, connectsSockets }: { from?: string; answer?: Partial<ServiceAnswer>; connectsSockets?: boolean } = {},
) {
  const detectLocal = { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } as const
  const table = FrontendTable.of(view(services, ['10.96.0.0/16']), { detectLocal })
  return explain(parseQuestion(text, 'default'), {
    table,
    nodeName: 'a',
    ...(connectsSockets === undefined ? {} : { features: { ...allFeatures, connectsSockets } }),
    client: from === undefined ? undefined : parseClient(from, (ip) => clientOf(table.node, ip)),
    serviceAnswer: async (service) => ({
      ...{ service, isKnown: true, nearest: [], endpoints: [], kubernetes: { value: nothingInKubernetes } },
      ...answer,
    }),
  })
}

test('a Service that works, as people read it', async () => {
  const endpoints = [
    slice('10.244.1.5', { node: 'a', isLocal: true }),
    slice('10.244.2.7'),
    slice('10.244.2.8', { ready: false, scopes: [], reason: 'not-ready' }),
  ]
  expect(explanationText(await ask('web', [web], { answer: { endpoints } }))).toBe(`default/web on node a
default/web is served on this node; 1 not ready of 3 endpoints.

10.96.0.10:80/tcp  cluster IP, port http
  ✓ A connection from a pod goes to one of 2 endpoints at random. The endpoint sees the client's address.
    10.244.1.5:8080, 10.244.2.7:8080

192.0.2.10:80/tcp  load-balancer IP, port http
  ✓ A connection from a pod goes to one of 2 endpoints at random. The endpoint sees the node's address.
    10.244.1.5:8080, 10.244.2.7:8080
  ✓ A connection from outside the cluster goes to one of 2 endpoints at random. The endpoint sees the node's address.
    10.244.1.5:8080, 10.244.2.7:8080

IPv4 node port 30080/tcp  node port, port http
  ✓ A connection from a pod goes to one of 2 endpoints at random. The endpoint sees the node's address.
    10.244.1.5:8080, 10.244.2.7:8080
  ✓ A connection from outside the cluster goes to one of 2 endpoints at random. The endpoint sees the node's address.
    10.244.1.5:8080, 10.244.2.7:8080

What to do
  · KPNG-S013  1 not ready of 3 endpoints get no connections.
    Nothing, unless it lasts.
    kubectl -n default get endpointslices -l kubernetes.io/service-name=web -o yaml

Endpoints: this node uses 2 of 3
  ADDRESS          POD    NODE           ZONE  STATE      USED
  10.244.1.5:8080  web-5  a (this node)  z     ready      yes
  10.244.2.7:8080  web-7  b              z     ready      yes
  10.244.2.8:8080  web-8  b              z     not ready  no: it is not ready
`)
})

test.each([
  ['a pod of this node', true, undefined, "the client's address"],
  ['a pod of another node', true, '10.244.9.9', "the node's address"],
  ['without sockets', false, undefined, "the node's address"],
])(
  'the address that an endpoint sees, if sockets connect to it: %s',
  async (_title, connectsSockets, from, address) => {
    const given = from === undefined ? {} : { from }
    const { frontends } = await ask('192.0.2.10:80', [web], { connectsSockets, ...given })
    expect(frontends[0]?.routes[0]?.sentence).toContain(`The endpoint sees ${address}`)
  },
)

describe('why nobody answers', () => {
  test('no endpoint is ready', async () => {
    const endpoints = [1, 2].map((number) =>
      slice(`10.244.2.${number}`, { ready: false, scopes: [], reason: 'not-ready' }),
    )
    const { diagnosis, works, frontends } = await ask('broken', [broken], { answer: { endpoints } })
    expect(works).toBe(false)
    expect(diagnosis.headline).toBe('default/broken does not answer on this node: none of its 2 endpoints is ready.')
    expect(frontends[0]?.routes).toEqual([
      {
        from: 'a pod',
        outcome: 'refused',
        endpoints: [],
        sentence: 'A connection from a pod is refused: no endpoint serves it.',
      },
    ])
  })
  test('there are no endpoints at all', async () => {
    expect((await ask('broken', [broken])).diagnosis.headline).toBe(
      'default/broken does not answer on this node: no EndpointSlice of it lists an endpoint.',
    )
  })
  test('the policy is Local, and the endpoints are elsewhere', async () => {
    const local = {
      ...web,
      externalTrafficToLocal: true,
      endpoints: [endpoint('10.244.2.7', { scopes: ['internal', 'cluster'] })],
    }
    const { diagnosis, frontends } = await ask('web', [
      { ...local, ports: [tcp(80, { servedFamilies: { v4: true } })] },
    ])
    expect(diagnosis).toMatchObject({
      verdict: 'dropped',
      reason: 'externalTrafficPolicy is Local, and no endpoint on this node serves it',
    })
    expect(frontends[1]?.routes.map(({ sentence }) => sentence)).toEqual([
      "A connection from a pod goes to its only endpoint. The endpoint sees the client's address.",
      'A connection from outside the cluster is dropped: the traffic policy is Local, and no endpoint on this node serves it.',
    ])
  })
  test('the client is not in the source ranges', async () => {
    const guarded = { ...web, ipFilters: [{ sourceRanges: ['10.0.0.0/8'] }] }
    const at = async (from: string) => (await ask('192.0.2.10:80', [guarded], { from })).frontends[0]?.routes[0]
    expect((await at('10.1.1.1'))?.outcome).toBe('endpoint')
    expect(await at('203.0.113.9')).toMatchObject({
      outcome: 'dropped',
      sentence: 'A connection from 203.0.113.9 is dropped: loadBalancerSourceRanges allow only 10.0.0.0/8.',
    })
  })
  test('the Service does not exist, or kpng does not serve it', async () => {
    const nearest = ['default/web']
    const headlineOf = async (text: string, answer: Partial<ServiceAnswer>) =>
      (await ask(text, [web], { answer: { isKnown: false, ...answer } })).diagnosis.headline
    expect(await headlineOf('wep', { nearest })).toBe('There is no Service default/wep. Did you mean default/web?')
    const spec = { type: 'ClusterIP', clusterIps: [], selector: {}, ports: [], publishNotReadyAddresses: false }
    const service = { ...spec, awaitsLoadBalancer: false, notServed: 'it is headless.' }
    const kubernetes = { value: { ...nothingInKubernetes, service } }
    expect(await headlineOf('db', { kubernetes })).toBe('default/db is not served by this kpng: it is headless.')
    expect(await headlineOf('db', { kubernetes: { unknown: 'it is away' } })).toMatch(
      /^This kpng serves no Service default\/db\. Either there is none, or it is headless/,
    )
  })
  test.each([
    [
      '10.96.0.10:81',
      '10.96.0.10 is the cluster IP of default/web, which has no port 81/tcp. It has 80/tcp. Connections to other ports are refused.',
    ],
    [
      '10.96.0.10:80/udp',
      '10.96.0.10 is the cluster IP of default/web, which has no port 80/udp. It has 80/tcp. Connections to other ports are refused.',
    ],
    ['10.96.0.99:80', 'No Service has 10.96.0.99, which is in a range of cluster IPs. Connections to it are dropped.'],
    ['8.8.8.8:53/udp', 'No Service has 8.8.8.8:53/udp. kpng leaves such packets alone.'],
    ['30081', 'No Service has the node port 30081. The nearest is 30080 (default/web).'],
  ])('%s', async (question, answer) => {
    expect((await ask(question, [web])).diagnosis.headline).toBe(answer)
  })
})

test('an address without a port stands for all its ports, and a port without a protocol for TCP', async () => {
  const dns: TestService = {
    name: 'dns',
    ips: { clusterIps: ips('10.96.0.53') },
    ports: [tcp(53), udp(53)],
    endpoints: [],
  }
  expect((await ask('10.96.0.53', [dns])).frontends.map(({ id }) => id)).toEqual([
    '10.96.0.53:53/tcp',
    '10.96.0.53:53/udp',
  ])
  expect((await ask('10.96.0.53:53', [dns])).frontends.map(({ id }) => id)).toEqual(['10.96.0.53:53/tcp'])
})

test('a pod that reaches itself sees the address of the node', async () => {
  const alone = { ...web, endpoints: [endpoint('10.244.1.5', { local: true })] }
  const { frontends } = await ask('10.96.0.10:80', [alone], { from: '10.244.1.5' })
  expect(frontends[0]?.routes[0]?.sentence).toContain("The endpoint sees the node's address.")
})

test('an address of the node with a node port leads to the node port', async () => {
  const { diagnosis, frontends, works } = await ask('172.30.0.1:30080', [web], { from: 'outside' })
  expect(diagnosis.headline).toBe('default/web is served on this node.')
  expect([works, frontends.map(({ id }) => id)]).toEqual([true, ['IPv4 node port 30080/tcp']])
})

test('a connection that the data plane cannot serve is left alone', async () => {
  const whole: TestService = { ...web, mapIp: true, ports: [] }
  const table = FrontendTable.of(view([whole]))
  const { frontends, works } = await explain(parseQuestion('10.96.0.10:80', 'default'), {
    ...{ table, nodeName: 'a', serviceAnswer: async () => undefined },
    features: { ...allFeatures, wholeAddresses: false },
  })
  expect([works, frontends[0]?.routes[0]?.sentence]).toEqual([
    false,
    'A connection from a pod is left alone and routed on: this data plane does not serve whole addresses.',
  ])
})

test('what stops packets on the node, and what connections showed, are part of the answer', async () => {
  const explained = await ask('10.96.0.10:80', [web])
  const onNode = [
    { ...finding('KPNG-D001', 'ip_forward is 0.', { todo: 'Switch it on.' }), code: 'KPNG-N004' },
    { ...finding('KPNG-S012', 'rp_filter is 1.', { todo: 'Set it to 2.', command: 'sysctl …' }), code: 'KPNG-N005' },
  ]
  const probes = [
    { endpoint: '10.244.1.5:8080', result: 'connected', sentence: '10.244.1.5:8080 takes connections.' },
    { endpoint: '10.244.2.7:8080', result: 'refused', sentence: '10.244.2.7:8080 refuses connections.' },
  ] as const
  const with3More = withProbes({ ...explained, diagnosis: { ...explained.diagnosis, findings: onNode } }, probes, 3)
  expect(with3More.diagnosis.headline).toContain('1 of 2 endpoints do not take a connection.')
  const text = explanationText(with3More)
  expect(text).toContain(`
TCP connections from this machine
  ✓ 10.244.1.5:8080 takes connections.
  ✗ 10.244.2.7:8080 refuses connections.
  3 more were not tried.
`)
  expect(text).toContain(`
On this node
  ✗ KPNG-N004  ip_forward is 0.
    Switch it on.
  ! KPNG-N005  rp_filter is 1.
    Set it to 2.
    sysctl …
`)
})

test('rows that come later stand below the first ones', () => {
  const widths: number[] = []
  expect(
    columns(
      [
        ['NAME', 'TYPE'],
        ['a-long-name', 'x'],
      ],
      widths,
    ),
  ).toEqual(['NAME         TYPE', 'a-long-name  x'])
  expect(columns([['b', 'y']], widths)).toEqual(['b            y'])
})

test('an address that another Service owns is named', async () => {
  const thief: TestService = {
    name: 'thief',
    ips: { clusterIps: ips('10.96.0.66'), externalIps: ips('10.96.0.10') },
    ports: [tcp(80)],
    endpoints: [],
  }
  const { diagnosis, works, frontends } = await ask('thief', [web, thief])
  expect(works).toBe(false)
  expect(frontends.map(({ routes }) => routes[0]?.outcome)).toEqual(['refused', 'elsewhere'])
  expect(diagnosis.findings.map(({ code }) => code)).toContain('KPNG-S010')
  const served = { ...thief, endpoints: [endpoint('10.244.1.5')], ports: [tcp(80, { targetPort: 8080 })] }
  expect((await ask('thief', [web, served])).diagnosis).toMatchObject({
    verdict: 'partly',
    headline: 'default/thief answers only in part: 10.96.0.10:80/tcp belongs to Service default/web.',
  })
})

describe('what the data plane holds', () => {
  const held = async (holds: Partial<HeldFrontend> | undefined) => {
    const table = FrontendTable.of(view([web]))
    const { frontends, diagnosis, works } = await explain(parseQuestion('10.96.0.10:80', 'default'), {
      ...{ table, nodeName: 'a', serviceAnswer: async () => undefined },
      held: async () => holds && { inside: [], outside: [], otherwise: 'refuse', ...holds },
    })
    expect(works).toBe(frontends[0]?.held?.isRight)
    expect(diagnosis.verdict).toBe(works ? 'serving' : 'differs')
    return frontends[0]?.held
  }
  test('is exactly what it should be, whatever the order', async () => {
    expect(await held({ inside: ['10.244.2.7:8080', '10.244.1.5:8080'] })).toEqual({ isRight: true, differences: [] })
  })
  test('lacks an endpoint and has one that is gone', async () => {
    expect(await held({ inside: ['10.244.1.5:8080', '10.244.9.9:8080'] })).toEqual({
      isRight: false,
      differences: ['The data plane lacks 10.244.2.7:8080.', 'The data plane still has 10.244.9.9:8080.'],
    })
  })
  test('is nothing', async () => {
    expect((await held(undefined))?.differences).toEqual(['The data plane does not have it at all.'])
  })
})

describe('a question', () => {
  test.each([
    ['web', { kind: 'service', service: 'default/web' }],
    ['shop/web', { kind: 'service', service: 'shop/web' }],
    ['svc/web', { kind: 'service', service: 'default/web' }],
    ['10.96.0.10', { kind: 'address', ip: '10.96.0.10' }],
    ['10.96.0.10:53/UDP', { kind: 'address', ip: '10.96.0.10', port: 53, protocol: 'udp' }],
    ['[fd00::0:1]:80', { kind: 'address', ip: 'fd00::1', port: 80 }],
    ['fd00::1', { kind: 'address', ip: 'fd00::1' }],
    ['30080/udp', { kind: 'node-port', port: 30080, protocol: 'udp' }],
    ['shop/udp', { kind: 'service', service: 'shop/udp' }],
    ['10.96.0.10/udp', { kind: 'address', ip: '10.96.0.10', protocol: 'udp' }],
    ['web:8080', { kind: 'service', service: 'default/web', port: 8080 }],
    ['web.shop.svc', { kind: 'service', service: 'shop/web' }],
    ['web.shop.svc.cluster.local.', { kind: 'service', service: 'shop/web' }],
    ['web.shop:53/udp', { kind: 'service', service: 'shop/web', port: 53, protocol: 'udp' }],
    ['web-0.web.shop.svc', { kind: 'service', service: 'shop/web' }],
    ['http://web.shop/cart?a=b', { kind: 'service', service: 'shop/web', port: 80 }],
    ['https://user:secret@web:8443/', { kind: 'service', service: 'default/web', port: 8443 }],
    ['https://[fd00::1]/', { kind: 'address', ip: 'fd00::1', port: 443 }],
    ['http://10.96.0.10:8080', { kind: 'address', ip: '10.96.0.10', port: 8080 }],
  ])('%s', (text, question) => {
    expect(parseQuestion(text, 'default')).toEqual(question)
  })
  test.each(['', 'a b', '10.96.0.10:99999', '99999', 'Web!'])('that nobody can answer: "%s"', (text) => {
    expect(() => parseQuestion(text, 'default')).toThrow(/is not a (Service|port)/)
  })
  test('comes from a kind of client or from an address', async () => {
    const client = (text: string) => parseClient(text, (ip) => ({ kind: 'outside', ip }))
    expect(client('pod')).toEqual({ kind: 'pod' })
    expect(client('203.0.113.9')).toEqual({ kind: 'outside', ip: '203.0.113.9' })
    expect(() => client('everybody')).toThrow('--from takes pod, node, outside or an IP address, not "everybody".')
  })
})

test('a core that cannot say why takes only the reasons away', async () => {
  const table = FrontendTable.of(view([broken]), {})
  const serviceAnswer = async () => {
    throw new Error('The core is too old to say why.')
  }
  const explanation = await explain(parseQuestion('broken', 'default'), { table, nodeName: 'a', serviceAnswer })
  expect(explanation.diagnosis.headline).toBe('default/broken does not answer on this node: no endpoint serves it.')
  expect(explanationText(explanation)).toContain(
    '\nNot known\n  Which endpoints are left out: The core is too old to say why.\n',
  )
  const unknown = await explain(parseQuestion('nothing', 'default'), { table, nodeName: 'a', serviceAnswer })
  expect(unknown.diagnosis).toMatchObject({ verdict: 'unknown', used: 0 })
})

test('columns of more rows than a call may have arguments', () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => [`${index}`, 'x'])
  expect(columns(rows).at(-1)).toBe('199999  x')
})
