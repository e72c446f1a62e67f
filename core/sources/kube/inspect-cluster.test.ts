import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configuredCertificates, type KubeConnection, loadConnection } from './client/index.js'
import { listCluster } from './inspect-cluster.js'
import { askServer, readKubeProxyConfigMap } from './inspect-server.js'

let playground: Playground
let connection: KubeConnection

beforeEach(async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'] })
  connection = await loadConnection({ kubeconfig: playground.kubeconfigPath, env: {} })
})
afterEach(async () => {
  await connection.close()
  await playground.close()
})

function service(name: string, spec: object = {}, metadata: object = {}): void {
  const ports = [{ name: 'http', port: 80 }]
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...metadata },
    spec: { ports, ...spec },
  })
}

function slice(name: string, of: string | undefined, conditions: object = {}): void {
  playground.objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, labels: of === undefined ? {} : { 'kubernetes.io/service-name': of } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: ['10.1.0.1'], conditions }],
  })
}

test('reads all pages', async () => {
  for (let index = 0; index < 1201; index++) service(`s${index}`)
  const { services, store, unread } = await listCluster(connection)
  expect(services.filter(({ path }) => path.startsWith('default/s')).length).toBe(1201)
  expect(store.synced).toBe(true)
  expect(unread.size).toBe(0)
})

test('has the objects of each Service', async () => {
  service('web', { selector: { app: 'web' } })
  playground.objects.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-1', labels: { app: 'web' } },
    spec: { containers: [{ name: 'a', image: 'a' }] },
  })
  const { objects } = await listCluster(connection)
  expect(objects.objectsOf('default/web')).toMatchObject({
    service: { metadata: { name: 'web' } },
    pods: { value: [{ metadata: { name: 'web-1' } }] },
    networkPolicies: { value: [] },
  })
  playground.faults.failFraction(1, { code: 403, match: /^GET .*\/pods/ })
  const { pods } = (await listCluster(connection)).objects.objectsOf('default/web')
  expect(pods).toEqual({ unknown: expect.stringContaining('resources: ["pods"]') })
})

test('finds slices without a Service, unless Services cannot be read', async () => {
  service('headless', { clusterIP: 'None' })
  slice('headless-1', 'headless')
  slice('stray', 'gone')
  slice('unlabelled', undefined)
  expect((await listCluster(connection)).slicesWithoutService).toEqual(['default/stray', 'default/unlabelled'])
  playground.faults.failFraction(1, { code: 403, match: /^GET .*\/services/ })
  const { slicesWithoutService, unread } = await listCluster(connection)
  expect(slicesWithoutService).toEqual([])
  expect(unread.get('services')).toMatchObject({ isForbidden: true, group: '' })
})

test('names deprecated fields and node ports', async () => {
  const annotations = { 'service.kubernetes.io/topology-mode': 'Auto' }
  service(
    'lb',
    { type: 'LoadBalancer', externalIPs: ['192.0.2.1'], trafficDistribution: 'PreferClose' },
    { annotations },
  )
  const { services } = await listCluster(connection)
  const found = services.find(({ path }) => path === 'default/lb')
  expect(found?.fields).toEqual([
    'spec.externalIPs',
    'spec.trafficDistribution: PreferClose',
    'annotation service.kubernetes.io/topology-mode',
  ])
  expect(found?.nodePorts).toEqual([expect.any(Number)])
})

test('asks for the version, the clock, the certificates and the configuration of kube-proxy', async () => {
  const { version, clockAheadMs } = await askServer(connection)
  expect(version).toMatch(/^v1\./)
  expect(Math.abs(clockAheadMs ?? Number.NaN)).toBeLessThan(30_000)
  const certificates = await configuredCertificates({ kubeconfig: playground.kubeconfigPath, env: {} })
  expect(certificates.map(({ pem }) => pem.split('\n')[0])).toContain('-----BEGIN CERTIFICATE-----')
  expect(certificates.some(({ pem }) => pem.includes('PRIVATE KEY'))).toBe(false)
  await expect(readKubeProxyConfigMap(connection)).rejects.toThrow('it does not exist')
})
