import type { ServiceAnswer } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keptKeys } from '../core/kubernetes/index.js'
import { nodeViewOf } from '../core/sinks/local/index.js'
import { readContent } from '../core/sources/file/read.js'
import { Store } from '../core/store/index.js'
import { explainService, serviceFacts } from '../core/view/index.js'
import { newRow } from '../dashboard/model/rows.js'
import { FrontendTable } from '../dataplane/frontend-table.js'
import { serviceRows } from '../node/agent-api/rows.js'
import { collected } from './collected.js'
import { diagnoseIn } from './diagnose.js'
import { explain } from './explain.js'

// For any cluster, the list, the row of the page, the doctor and explain say the same about every Service, and the verdict is what the routes say.

const endpoint = fc.record({
  last: fc.integer({ min: 1, max: 9 }),
  prefix: fc.constantFrom('10.244.1.', '10.244.2.', '10.244.2.', 'fd00:244::', '169.254.3.'),
  nodeName: fc.constantFrom('node-a', 'node-b'),
  conditions: fc.constantFrom<object>(
    {},
    {},
    { ready: false, serving: false },
    { ready: false, serving: true, terminating: true },
  ),
  hint: fc.constantFrom(undefined, undefined, 'zone-a', 'zone-b'),
})
const portsOfSlice = fc.subarray([
  { name: 'a', port: 8080, protocol: 'TCP' },
  { name: 'b', port: 8081, protocol: 'TCP' },
])
const service = fc.record({
  isDual: fc.boolean(),
  ports: fc.subarray(
    [
      { name: 'a', port: 80 },
      { name: 'b', port: 81 },
    ],
    { minLength: 1 },
  ),
  protocol: fc.constantFrom('TCP', 'TCP', 'SCTP'),
  external: fc.constantFrom<readonly string[]>([], [], ['192.0.2.1'], ['10.96.0.1'], ['127.0.0.9']),
  isNodePort: fc.boolean(),
  policies: fc.constantFrom<object>({}, {}, { internalTrafficPolicy: 'Local' }, { externalTrafficPolicy: 'Local' }),
  slices: fc.array(fc.record({ ports: portsOfSlice, endpoints: fc.array(endpoint, { maxLength: 4 }) }), {
    maxLength: 2,
  }),
})
type Service = ReturnType<typeof fc.sample<typeof service extends fc.Arbitrary<infer T> ? T : never>>[number]

const nodes = ['a', 'b'].map((letter, index) => ({
  ...{ apiVersion: 'v1', kind: 'Node', spec: { podCIDRs: [`10.244.${index + 1}.0/24`] } },
  metadata: { name: `node-${letter}`, labels: { 'topology.kubernetes.io/zone': `zone-${letter}` } },
  status: { addresses: [{ type: 'InternalIP', address: `172.30.0.${index + 1}` }] },
}))

function objectsOf(
  { isDual, ports, protocol, external, isNodePort, policies, slices }: Service,
  index: number,
): object[] {
  const [name, namespace] = [`s${index}`, 'default']
  const clusterIPs = [`10.96.0.${index + 1}`, ...(isDual ? [`fd00:96::${index + 1}`] : [])]
  const type = isNodePort ? 'NodePort' : 'ClusterIP'
  const given = ports.map((port) => ({
    ...port,
    protocol,
    ...(isNodePort ? { nodePort: 30_000 + index * 100 + port.port } : {}),
  }))
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace } },
      spec: { type, clusterIP: clusterIPs[0], clusterIPs, externalIPs: external, ports: given, ...policies },
    },
    ...slices.flatMap((slice, number) =>
      ['IPv4', 'IPv6'].map((addressType) => ({
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType },
        ports: slice.ports.map((port) => ({ ...port, protocol })),
        metadata: {
          name: `${name}-${number}-${addressType}`,
          namespace,
          labels: { 'kubernetes.io/service-name': name },
        },
        endpoints: slice.endpoints
          .filter(({ prefix }) => prefix.includes(':') === (addressType === 'IPv6'))
          .map(({ last, prefix, nodeName, conditions, hint }) => ({
            ...{ addresses: [`${prefix}${last}`], nodeName, conditions: { ready: true, ...conditions } },
            ...(hint === undefined ? {} : { hints: { forZones: [{ name: hint }] } }),
          })),
      })),
    ),
  ]
}

function storeOf(services: readonly Service[]): Store {
  const items = [...nodes, ...services.flatMap(objectsOf)]
  const kept = keptKeys([], [])
  const reading = { serviceProxyName: '', intern: String, keptOfServices: kept, keptOfNodes: kept }
  const store = new Store()
  store.update((transaction) => {
    transaction.replaceAll(readContent('objects.json', JSON.stringify({ kind: 'List', items }), reading))
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  return store
}

const features = {
  kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
  protocols: ['tcp', 'udp'],
} as const

test('all surfaces agree', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(service, { minLength: 1, maxLength: 4 }), fc.boolean(), async (services, isUserspace) => {
      const store = storeOf(services)
      const view = await nodeViewOf(store, 'node-a')
      const table = FrontendTable.of(view)
      const given = {
        ...{ sourceRanges: true, wholeAddresses: true, keepsSourceAddress: true, localhostNodePorts: false },
        ...features,
        protocols: isUserspace ? features.protocols : (['tcp', 'udp', 'sctp'] as const),
      }
      const factsOf = (path: string, used: number) => serviceFacts(store, path, 'node-a', used)
      const rows = serviceRows(view, { table, features: given, factsOf })
      const diagnoses = await Promise.all(
        rows.map(async (row) => {
          const path = `${row.namespace}/${row.name}`
          const {
            diagnosis,
            frontends,
            service: answer,
          } = await explain(
            { kind: 'service', service: path },
            {
              table,
              nodeName: 'node-a',
              features: given,
              serviceAnswer: async () => explainService(store, path, 'node-a'),
            },
          )
          const { verdict, headline, reason, used, total } = diagnosis
          const codes = diagnosis.findings.map(({ code }) => code)
          expect(row).toMatchObject({ verdict, headline, reason, endpoints: used, total, findings: codes })
          const shown = newRow(path, { ...row, hints: false, sourceRanges: false, changedBy: 0 }).service
          expect([shown.verdict, shown.reason]).toEqual([verdict, reason])
          // The endpoints that are listed as used are those that are counted, and each other one has a reason.
          const listed = (answer as ServiceAnswer).endpoints
          expect(listed.filter((each) => each.reason === undefined)).toHaveLength(used)
          const outcomes = frontends.flatMap(({ routes }) => routes.map(({ outcome }) => outcome))
          expect([verdict, outcomes.every((outcome) => outcome === 'endpoint')]).toEqual([
            verdict,
            verdict === 'serving' || verdict === 'draining',
          ])
          if (verdict === 'refused') expect(outcomes).not.toContain('endpoint')
          if (verdict === 'partly') expect(new Set(outcomes).size).toBeGreaterThan(1)
          if (verdict !== 'serving') expect(reason, path).not.toBe('')
          return diagnosis
        }),
      )
      const byTable = rows.map(({ namespace, name, endpoints }) => {
        const path = `${namespace}/${name}`
        const facts = serviceFacts(store, path, 'node-a', endpoints)
        const kubernetes = { unknown: 'nobody was asked' }
        return diagnoseIn(table, path, {
          features: given,
          selection: facts ? { value: { isKnown: true, ...facts } } : kubernetes,
          kubernetes,
        })
      })
      expect(collected(byTable)).toEqual(collected(diagnoses))
    }),
    { numRuns: 300 },
  )
})
