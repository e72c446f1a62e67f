import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type KubeConnection, loadConnection } from './client/index.js'
import { inspectService, kubernetesFacts, readObjects } from './inspect-service.js'

let playground: Playground
let connection: KubeConnection

beforeAll(async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'] })
  connection = await loadConnection({ kubeconfig: playground.kubeconfigPath, env: {} })
})
afterAll(async () => {
  await connection.close()
  await playground.close()
})

const service = (name: string, spec: object, labels: object = {}) =>
  playground.objects.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name, labels }, spec })

function pod(name: string, app: string, ready: boolean) {
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app } },
    spec: { containers: [{ name: 'main', image: 'any', ports: [{ name: 'http', containerPort: 8080 }] }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  })
}

async function inspect(name: string, proxyName = '') {
  const facts = await inspectService(connection, 'default', name, proxyName)
  if ('unknown' in facts) throw new Error(facts.unknown)
  return facts.value
}
const ports = [{ port: 80, targetPort: 8080 }]

test('a Service that is missing', async () => {
  expect(await inspect('missing')).not.toHaveProperty('service')
})

test('a Service and its pods', async () => {
  service('waiting', { selector: { app: 'waiting' }, ports: [{ port: 80, targetPort: 'http' }], type: 'LoadBalancer' })
  pod('waiting-1', 'waiting', false)
  const { service: found, pods, from } = await inspect('waiting')
  expect(from).toMatch(/^the API server https?:/)
  expect(found).toMatchObject({
    selector: { app: 'waiting' },
    ports: [{ targetPort: 'http' }],
    awaitsLoadBalancer: true,
  })
  expect(pods).toEqual({
    value: [
      {
        ...{ name: 'waiting-1', isReady: false, state: 'running, but not ready' },
        ports: [{ name: 'http', number: 8080, protocol: 'TCP' }],
      },
    ],
  })
})

test('a selector that matches no pod: the pods that it may have meant', async () => {
  service('lonely', { selector: { app: 'lonley' }, ports })
  pod('lonely-1', 'lonely', true)
  const { pods, otherPods } = await inspect('lonely')
  expect(pods).toEqual({ value: [] })
  expect('value' in otherPods && otherPods.value.map(({ labels }) => labels)).toContainEqual({ app: 'lonely' })
})

test('what a proxy does not serve', async () => {
  service('headless', { clusterIP: 'None', ports })
  service('named', { ports }, { 'service.kubernetes.io/service-proxy-name': 'mine' })
  service('elsewhere', { type: 'ExternalName', externalName: 'example.com' })
  expect((await inspect('headless')).service?.notServed).toMatch(/^it is headless/)
  expect((await inspect('headless', 'mine')).service?.notServed).toMatch(/so it is not for this proxy/)
  expect((await inspect('named')).service?.notServed).toMatch(/so the proxy of that name serves it/)
  expect((await inspect('named', 'mine')).service?.notServed).toBeUndefined()
  expect((await inspect('elsewhere')).service?.notServed).toMatch(/a DNS name for example.com/)
})

test('without the right to list pods they are unknown, with the rule that gives it', async () => {
  service('guarded', { selector: { app: 'guarded' }, ports })
  playground.faults.failFraction(1, { code: 403, match: /^GET .*\/pods/ })
  const { pods } = await inspect('guarded')
  expect(pods).toEqual({
    unknown: expect.stringContaining('{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }'),
  })
})

test('a server that does not answer is unknown, and nothing is thrown', async () => {
  const other = await startPlayground({ runPods: false })
  const gone = await loadConnection({ kubeconfig: other.kubeconfigPath, env: {} })
  await other.close()
  const facts = await inspectService(gone, 'default', 'fine')
  await gone.close()
  expect(facts).toEqual({ unknown: expect.stringMatching(/^the API server .* cannot be asked: /) })
})

test('manifests are asked like a server: workloads stand for their pods, policies for those that they select', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-objects-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(
    join(folder, 'web.yaml'),
    `apiVersion: v1
kind: List
items:
- { apiVersion: v1, kind: Service, metadata: { name: web }, spec: { selector: { app: web }, ports: [{ port: 80 }] } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  template: { metadata: { labels: { app: web, tier: front } }, spec: { containers: [{ ports: [{ containerPort: 8080 }] }] } }
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: closed }
spec: { podSelector: { matchExpressions: [{ key: tier, operator: In, values: [front] }] } }
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: outgoing }
spec: { podSelector: {}, policyTypes: [Egress] }
`,
  )
  const objects = await readObjects(folder)
  const facts = objects && kubernetesFacts('the file', '', objects.objectsOf('default/web'))
  expect(facts).toMatchObject({
    pods: { value: [{ name: 'deployment/web', isReady: true, ports: [{ number: 8080 }] }] },
    networkPolicies: { value: ['closed'] },
  })
})
