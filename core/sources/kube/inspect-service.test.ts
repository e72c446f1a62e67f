import { type Playground, startPlayground } from '@kpng/playground'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type KubeConnection, loadConnection } from './client/index.js'
import { inspectService } from './inspect-service.js'

let playground: Playground
let connection: KubeConnection

beforeAll(async () => {
  playground = await startPlayground({ runPods: false })
  connection = await loadConnection({ kubeconfig: playground.kubeconfigPath, env: {} })
})
afterAll(async () => {
  await connection.close()
  await playground.close()
})

function service(name: string, spec: object, labels: Record<string, string> = {}): void {
  playground.objects.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name, labels }, spec })
}

function pod(name: string, app: string, ready: boolean): void {
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app } },
    spec: { containers: [{ name: 'main', image: 'any', ports: [{ name: 'http', containerPort: 8080 }] }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  })
}

const inspect = (name: string, proxyName = '') => inspectService(connection, 'default', name, proxyName)
const ports = [{ port: 80, targetPort: 8080 }]

test('a Service that is missing', async () => {
  expect(await inspect('missing')).toEqual({ exists: false, causes: [] })
})

test('a selector that matches no pod', async () => {
  service('lonely', { selector: { app: 'nothing', tier: 'front' }, ports })
  expect(await inspect('lonely')).toEqual({
    exists: true,
    causes: ['Its selector (app=nothing,tier=front) matches no pod in the namespace default.'],
  })
})

test('pods that are not ready', async () => {
  service('waiting', { selector: { app: 'waiting' }, ports })
  for (const number of [1, 2, 3, 4]) pod(`waiting-${number}`, 'waiting', false)
  const { causes } = await inspect('waiting')
  expect(causes).toEqual([
    'No pod that its selector (app=waiting) matches is ready (waiting-1: running, but not ready, waiting-2: running, but not ready, waiting-3: running, but not ready, and 1 more).',
  ])
})

test('a port name that no pod has', async () => {
  service('misspelt', { selector: { app: 'misspelt' }, ports: [{ port: 80, targetPort: 'htpp' }] })
  pod('misspelt-1', 'misspelt', true)
  expect((await inspect('misspelt')).causes).toEqual([
    'Its targetPort "htpp" is a name that no container of its pods has. Their ports are named http.',
  ])
})

test('a Service without a selector', async () => {
  service('by-hand', { ports })
  expect((await inspect('by-hand')).causes).toEqual([
    'It has no selector, so Kubernetes makes no EndpointSlices for it. Somebody must write them.',
  ])
})

test('nothing is wrong', async () => {
  service('fine', { selector: { app: 'fine' }, ports: [{ port: 80, targetPort: 'http' }] })
  pod('fine-1', 'fine', true)
  expect(await inspect('fine')).toEqual({ exists: true, causes: [] })
})

test('what a proxy does not serve', async () => {
  service('headless', { clusterIP: 'None', ports })
  service('named', { ports }, { 'service.kubernetes.io/service-proxy-name': 'mine' })
  service('elsewhere', { type: 'ExternalName', externalName: 'example.com' })
  expect((await inspect('headless')).notServed).toMatch(/^it is headless/)
  expect((await inspect('headless', 'mine')).notServed).toMatch(/so it is not for this proxy/)
  expect((await inspect('named')).notServed).toMatch(/so the proxy of that name serves it/)
  expect((await inspect('named', 'mine')).notServed).toBeUndefined()
  expect((await inspect('elsewhere')).notServed).toMatch(/a DNS name for example.com/)
})

test('a server that does not answer is said, and nothing is thrown', async () => {
  const other = await startPlayground({ runPods: false })
  const gone = await loadConnection({ kubeconfig: other.kubeconfigPath, env: {} })
  await other.close()
  const { causes } = await inspectService(gone, 'default', 'fine')
  await gone.close()
  expect(causes[0]).toMatch(/^The Service cannot be read: /)
})
